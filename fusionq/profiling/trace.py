"""A profile as a Perfetto trace: TrackEvents in Perfetto's protobuf form
(https://perfetto.dev/docs/reference/synthetic-track-event).

One track a worker, with what it did; one for the launches; an arrow from each last arriver to the
one who waited for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fusionq.base.errors import FusionqError
from fusionq.profiling.model import ProfileResults
from fusionq.profiling.timeline import ACCOUNTED, Timeline
from fusionq.profiling.waits import last_arrivers

_SEQUENCE = 1
_PROCESS = 1
_LAUNCHES = 2
_FIRST_WORKER = 16
_MOST_INSIDE = 1
"""Tracks below a worker's, for what lies inside its work."""


def write_trace(profile: ProfileResults, path: Path) -> None:
    """Write the program's own launches to ``path``; FusionqError without the package
    ``perfetto``."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError as error:
        raise FusionqError(
            f"a trace needs the package perfetto ({error}); install it with: "
            'pip install "fusionq[profile]"'
        ) from error
    builder = TraceProtoBuilder()
    writer = _Writer(profile.timeline, builder, protos.TrackEvent)
    writer.write()
    path.write_bytes(builder.serialize())


def _earliest(timeline: Timeline) -> int:
    """The time that the trace begins at: that of the first submission, or of a record which by the
    device's clock, read less precisely than the host's, lies before it."""
    submitted = [launch.submitted_ns for launch in timeline.launches]
    started = [launch.start_ns for launch in timeline.launches]
    recorded = [timeline.intervals["start"].min()] if len(timeline.intervals) else []
    return int(min([*submitted, *started, *recorded], default=0))


class _Writer:
    def __init__(self, timeline: Timeline, builder: Any, event: Any) -> None:
        self.timeline = timeline
        self.builder = builder
        self.event = event
        self.origin = _earliest(timeline)

    def write(self) -> None:
        """All packets, in order of time after the tracks."""
        self._track(_PROCESS, "fusionq", None)
        self._track(_LAUNCHES, "launches", _PROCESS)
        for worker in range(self.timeline.workers):
            uuid = self._worker(worker)
            self._track(uuid, f"worker {worker}", _PROCESS)
            self._track(uuid + _MOST_INSIDE, f"worker {worker}: regions", uuid)
        events = sorted([*self._launches(), *self._intervals()], key=lambda e: e[:2])
        for time, _, track, kind, name, details in events:
            self._emit(time, track, kind, name, details)

    def _worker(self, worker: int) -> int:
        return _FIRST_WORKER + worker * (1 + _MOST_INSIDE)

    def _packet(self, time: int) -> Any:
        packet = self.builder.add_packet()
        packet.timestamp = time
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _track(self, uuid: int, name: str, parent: int | None) -> None:
        packet = self._packet(0)
        packet.track_descriptor.uuid = uuid
        if parent is None:
            packet.track_descriptor.process.pid = _PROCESS
            packet.track_descriptor.process.process_name = name
        else:
            packet.track_descriptor.parent_uuid = parent
            packet.track_descriptor.name = name

    def _emit(self, time: int, track: int, kind: int, name: str, details: dict[str, Any]) -> None:
        packet = self._packet(time)
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name = name
        for category in details.get("categories", ()):
            event.categories.append(category)
        event.flow_ids.extend(details.get("flows", ()))
        event.terminating_flow_ids.extend(details.get("ends_flows", ()))
        for key, value in details.get("values", {}).items():
            annotation = event.debug_annotations.add()
            annotation.name, annotation.int_value = key, int(value)

    # ------------------------------------------------------------------------- events
    def _slice(
        self, start: int, end: int, track: int, name: str, details: dict[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Begin and end; at one time, ends come before beginnings and the longer begins first."""
        begin, finish = start - self.origin, end - self.origin
        yield begin, (1, begin - finish), track, self.event.TYPE_SLICE_BEGIN, name, details
        yield finish, (0, begin), track, self.event.TYPE_SLICE_END, "", {}

    def _launches(self) -> Iterator[tuple[Any, ...]]:
        for launch in self.timeline.launches:
            values = {
                "submitted_ns": launch.submitted_ns - self.origin,
                "work_groups": launch.groups,
            }
            details = {"categories": ["launch"], "values": values}
            yield from self._slice(launch.start_ns, launch.end_ns, _LAUNCHES, launch.name, details)

    def _intervals(self) -> Iterator[tuple[Any, ...]]:
        timeline = self.timeline
        lasted = timeline.intervals["end"] > timeline.intervals["start"]
        producers = np.where(lasted, last_arrivers(timeline), -1)
        sources = set(producers[producers >= 0].tolist())
        for position in np.argsort(timeline.intervals["start"], kind="stable").tolist():
            row = timeline.intervals[position]
            region = timeline.regions[int(row["region"])]
            track = self._worker(int(row["worker"]))
            values = {"instance": row["instance"], "launch": row["launch"]}
            if row["payload"]:
                values["payload"] = row["payload"]
            details: dict[str, Any] = {"categories": [region.kind], "values": values}
            # Flow ids are positions counted from 1: one for each publication that ended a wait.
            if position in sources:
                details["flows"] = [position + 1]
            if producers[position] >= 0:
                details["ends_flows"] = [int(producers[position]) + 1]
            start, end = int(row["start"]), int(row["end"])
            if region.kind == "mark":
                time = start - self.origin
                kind = self.event.TYPE_INSTANT
                yield time, (2, 0), track + _MOST_INSIDE, kind, region.name, details
            else:
                inside = 0 if region.kind in ACCOUNTED else _MOST_INSIDE
                yield from self._slice(start, end, track + inside, str(region), details)
