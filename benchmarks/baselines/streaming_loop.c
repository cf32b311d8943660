/* One fused loop over float arrays: the limit that memory sets.
 *
 * Compiled with -DINPUTS=<count>, -DEXPRESSION=<result from the vectors values[0], values[1], ...>, and
 * -DNON_TEMPORAL for stores past the caches.  Whole vectors go through the widest registers
 * there are; what is left over through a padded vector.  The output must be 64-byte aligned.
 */
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 16
#define STREAM(p, v) _mm512_stream_ps((p), (__m512)(v))
#elif defined(__AVX__)
#define WIDTH 8
#define STREAM(p, v) _mm256_stream_ps((p), (__m256)(v))
#elif defined(__x86_64__)
#define WIDTH 4
#define STREAM(p, v) _mm_stream_ps((p), (__m128)(v))
#else
#define WIDTH 4
#define STREAM(p, v) (*(vector *)(p) = (v))
#endif

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float))));
typedef float loose_vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4)));

#if defined(NON_TEMPORAL)
#define STORE(p, v) STREAM((p), (v))
#else
#define STORE(p, v) (*(vector *)(p) = (v))
#endif

void run(const float *const *inputs, float *output, ptrdiff_t n)
{
    const ptrdiff_t whole = n - n % WIDTH;
    const float *in[INPUTS];
    for (int k = 0; k < INPUTS; k++)
        in[k] = inputs[k];

#pragma omp parallel for schedule(guided, 1024)
    for (ptrdiff_t i = 0; i < whole; i += WIDTH) {
        vector values[INPUTS];
        for (int k = 0; k < INPUTS; k++)
            values[k] = *(const loose_vector *)(in[k] + i);
        STORE(output + i, EXPRESSION);
    }

    if (whole < n) {
        const size_t bytes = (size_t)(n - whole) * sizeof(float);
        vector values[INPUTS], result;
        for (int k = 0; k < INPUTS; k++) {
            values[k] = (vector){0};
            memcpy(&values[k], in[k] + whole, bytes);
        }
        result = EXPRESSION;
        memcpy(output + whole, &result, bytes);
    }
#if defined(NON_TEMPORAL) && defined(__x86_64__)
    _mm_sfence();
#endif
}
