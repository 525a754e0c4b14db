#include "textflag.h"
#include "go_asm.h"
#include "tiles_amd64.h"

// Products of int8 and of bfloat16 (packed.go) with the tiles of AMX: 32 rows and 32
// columns at a time. Tiles 0 to 3 hold the sums, 4 and 5 two groups of 16 rows, 6 and 7
// two groups of 16 columns, for a step of 64 bytes of the rows.

#define PAIRS(MUL) \
	MOVQ config+0(FP), AX; \
	TILE_CONFIG_AX; \
	MOVQ p+8(FP), R8; \
	MOVQ product_rows(R8), R9; \
	MOVQ product_a(R8), R10; \
	MOVQ product_lda(R8), R11; \
	MOVQ product_sums(R8), BX; \
	MOVQ product_steps(R8), R12; \
	MOVQ product_b(R8), R13; \
	SHRQ $2, R12; \
	MOVQ R11, R15; \
	SHLQ $4, R15; \
pair: \
	MOVQ R10, SI; \
	LEAQ (R10)(R15*1), DX; \
	LEAQ (R10)(R15*2), R10; \
	MOVQ R13, DI; \
	MOVQ R12, CX; \
	TILE_ZERO(0); \
	TILE_ZERO(1); \
	TILE_ZERO(2); \
	TILE_ZERO(3); \
step: \
	MOVQ R11, AX; \
	TILE_LOAD(4, inSI, 0); \
	TILE_LOAD(5, inDX, 0); \
	MOVQ $128, AX; \
	TILE_LOAD(6, inDI, 0); \
	TILE_LOAD(7, inDI, 64); \
	MUL(0, 4, 6); \
	MUL(1, 4, 7); \
	MUL(2, 5, 6); \
	MUL(3, 5, 7); \
	ADDQ $64, SI; \
	ADDQ $64, DX; \
	ADDQ $2048, DI; \
	DECQ CX; \
	JNZ step; \
	TILE_STORE(0, inBX, 0); \
	TILE_STORE(1, inBX, 64); \
	TILE_STORE(2, inBX, 2048); \
	TILE_STORE(3, inBX, 2112); \
	ADDQ $4096, BX; \
	SUBQ $32, R9; \
	JG pair; \
	TILE_RELEASE

// func tilesInt8(config *tileConfig, p *product)
TEXT ·tilesInt8(SB), NOSPLIT, $0-16
	PAIRS(TILE_MUL_BYTES)
	RET

// func tilesBF16(config *tileConfig, p *product)
TEXT ·tilesBF16(SB), NOSPLIT, $0-16
	PAIRS(TILE_MUL)
	RET

// finishInt8AVX512 turns sums into floats: finish in portable.go, with the same roundings.
//
// func finishInt8AVX512(p *product)
TEXT ·finishInt8AVX512(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	MOVQ product_rows(AX), R13
	MOVQ product_sums(AX), SI
	MOVQ product_c(AX), DX
	MOVQ product_ldc(AX), R9
	MOVQ product_from(AX), BX
	MOVQ product_ldfrom(AX), R15
	SHLQ $2, R9
	SHLQ $2, R15
	MOVQ product_colScale(AX), CX
	VMOVUPS (CX), Z24
	VMOVUPS 64(CX), Z25
	MOVQ product_colSum(AX), CX
	VMOVUPS (CX), Z26
	VMOVUPS 64(CX), Z27
	MOVQ product_scale(AX), DI
	MOVQ product_low(AX), CX

row:
	VBROADCASTSS (DI), Z30
	VBROADCASTSS (CX), Z31
	VCVTDQ2PS (SI), Z0
	VCVTDQ2PS 64(SI), Z1
	VMULPS Z24, Z0, Z0
	VMULPS Z25, Z1, Z1
	VMULPS Z30, Z0, Z0
	VMULPS Z30, Z1, Z1
	VMULPS Z26, Z31, Z28
	VMULPS Z27, Z31, Z29
	VADDPS Z28, Z0, Z0
	VADDPS Z29, Z1, Z1
	VADDPS (BX), Z0, Z0
	VADDPS 64(BX), Z1, Z1
	VMOVUPS Z0, (DX)
	VMOVUPS Z1, 64(DX)
	ADDQ $128, SI
	ADDQ $4, DI
	ADDQ $4, CX
	ADDQ R9, DX
	ADDQ R15, BX
	DECQ R13
	JNZ row
	VZEROUPPER
	RET

// func finishBF16AVX512(p *product)
TEXT ·finishBF16AVX512(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	MOVQ product_rows(AX), R13
	MOVQ product_sums(AX), SI
	MOVQ product_c(AX), DX
	MOVQ product_ldc(AX), R9
	MOVQ product_from(AX), BX
	MOVQ product_ldfrom(AX), R15
	SHLQ $2, R9
	SHLQ $2, R15

row:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VADDPS (BX), Z0, Z0
	VADDPS 64(BX), Z1, Z1
	VMOVUPS Z0, (DX)
	VMOVUPS Z1, 64(DX)
	ADDQ $128, SI
	ADDQ R9, DX
	ADDQ R15, BX
	DECQ R13
	JNZ row
	VZEROUPPER
	RET
