//@ needs half.h
// A few floats at a time, the same few operations for every instruction set; this one for any machine: four lanes.
// In, out: vf, LANES floats. Sums along lanes have one fixed order.
typedef float vf __attribute__((vector_size(16)));
enum { LANES = 4 };

static inline vf vf_set(float x) {
    return (vf){x, x, x, x};
}

static inline vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vf_store(float *p, vf v) {
    memcpy(p, &v, sizeof v);
}

// Values of the cache: f16 or f32 in memory.
static inline vf vf_load_f32(const uint8_t *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline vf vf_load_f16(const uint8_t *p) {
    return (vf){
        f16_to_f32(read_u16(p)), f16_to_f32(read_u16(p + 2)), f16_to_f32(read_u16(p + 4)), f16_to_f32(read_u16(p + 6))};
}

static inline vf vf_fma(vf a, vf b, vf c) {
    return a * b + c;
}

static inline vf vf_max(vf a, vf b) {
    vf m;
    for (int i = 0; i < LANES; i++) m[i] = a[i] > b[i] ? a[i] : b[i];
    return m;
}

static inline float vf_sum(vf v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline float vf_top(vf v) {
    float m = v[0];
    for (int i = 1; i < LANES; i++) m = v[i] > m ? v[i] : m;
    return m;
}
