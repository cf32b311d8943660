"""Queues, events and fusion as users see them; launching and the order between queues."""
