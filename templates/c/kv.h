//@ needs half.h
// How keys and values of one layer lie in a page of PAGE positions, as f16 or f32: keys as [kv head][block of 16
// positions] [dk][16], so that sixteen scores are made side by side; values as [kv head][position][dv].
// In: the layer's part of a page, g kv heads, the position's place in the page, its keys or values [g][width].
static inline void kv_put_k_f16(uint8_t *page, int64_t g, int64_t dk, int slot, const float *restrict k) {
    for (int64_t i = 0; i < g * dk; i++) {
        const uint16_t v = f32_to_f16(k[i]);
        memcpy(page + 2 * ((i / dk * PAGE + slot / 16 * 16) * dk + i % dk * 16 + slot % 16), &v, 2);
    }
}

static inline void kv_put_k_f32(uint8_t *page, int64_t g, int64_t dk, int slot, const float *restrict k) {
    for (int64_t i = 0; i < g * dk; i++)
        memcpy(page + 4 * ((i / dk * PAGE + slot / 16 * 16) * dk + i % dk * 16 + slot % 16), k + i, 4);
}

static inline void kv_put_v_f16(uint8_t *page, int64_t g, int64_t dv, int slot, const float *restrict v) {
    for (int64_t h = 0; h < g; h++) f32_to_f16_n(v + h * dv, page + 2 * (h * PAGE + slot) * dv, dv);
}

static inline void kv_put_v_f32(uint8_t *page, int64_t g, int64_t dv, int slot, const float *restrict v) {
    for (int64_t h = 0; h < g; h++) memcpy(page + 4 * (h * PAGE + slot) * dv, v + h * dv, (size_t) dv * 4);
}
