#include "textflag.h"
#include "go_asm.h"

// A block of 6, 4 or 2 rows by 16 columns stays in registers while its products are
// added up. Of the last block only the rows that exist are stored.

// VPDPBUSD with the VEX prefix, as processors without AVX-512 have it; Go's assembler
// knows the other form only. The macro spells out its bytes: C += A·B, unsigned bytes of
// A by signed ones of B, by the numbers of the registers, of which A's is above 7.
#define DPBUSD(B, A, C) \
	BYTE $0xC4; \
	BYTE $(0xE2^((C&8)<<4)^((B&8)<<2)); \
	BYTE $(0x7D^((A&15)<<3)); \
	BYTE $0x50; \
	BYTE $(0xC0|((C&7)<<3)|(B&7))

#define ROWV(X, Y, T, LO, HI) \
	VPBROADCASTD X, Y; \
	DPBUSD(12, T, LO); \
	DPBUSD(13, T, HI)

// Without such an instruction bytes are widened to 16 bits, whose products are added in
// pairs without loss; VPMADDUBSW, which multiplies bytes, would saturate.
#define ROWW(X, LO, HI) \
	VPBROADCASTD X, Y14; \
	VPMADDWD Y12, Y14, Y15; \
	VPMADDWD Y13, Y14, Y14; \
	VPADDD Y15, LO, LO; \
	VPADDD Y14, HI, HI

// STORE turns the sums of a row into floats: finish in portable.go, with the same
// roundings.
#define STORE(LO, HI) \
	VBROADCASTSS (DI)(R14*1), Y12; \
	VBROADCASTSS (CX)(R14*1), Y13; \
	VCVTDQ2PS LO, LO; \
	VCVTDQ2PS HI, HI; \
	VMULPS (R11), LO, LO; \
	VMULPS 32(R11), HI, HI; \
	VMULPS Y12, LO, LO; \
	VMULPS Y12, HI, HI; \
	VMULPS (R12), Y13, Y14; \
	VMULPS 32(R12), Y13, Y15; \
	VADDPS Y14, LO, LO; \
	VADDPS Y15, HI, HI; \
	VADDPS (BX), LO, LO; \
	VADDPS 32(BX), HI, HI; \
	VMOVUPS LO, (DX); \
	VMOVUPS HI, 32(DX); \
	ADDQ R15, BX; \
	ADDQ R9, DX; \
	ADDQ $4, R14; \
	DECQ R13; \
	JZ done

// func productAVXVNNI(p *product)
TEXT ·productAVXVNNI(SB), NOSPLIT, $8-8
	MOVQ p+0(FP), AX
	MOVQ product_rows(AX), R13
	MOVQ product_a(AX), SI
	MOVQ product_lda(AX), R8
	MOVQ product_c(AX), DX
	MOVQ product_ldc(AX), R9
	MOVQ product_from(AX), BX
	MOVQ product_ldfrom(AX), R15
	MOVQ product_colScale(AX), R11
	MOVQ product_colSum(AX), R12
	SHLQ $2, R9                // strides in bytes
	SHLQ $2, R15
	XORQ R14, R14

block:
	MOVQ SI, start-8(SP)
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*1), R10       // the fourth row
	MOVQ product_b(AX), DI
	MOVQ product_steps(AX), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	CMPQ R13, $2
	JLE loop2
	CMPQ R13, $4
	JLE loop4

loop6:
	VMOVDQU 0(DI), Y12
	VMOVDQU 32(DI), Y13
	ROWV((SI), Y14, 14, 0, 1)
	ROWV((SI)(R8*1), Y15, 15, 2, 3)
	ROWV((SI)(R8*2), Y14, 14, 4, 5)
	ROWV((R10), Y15, 15, 6, 7)
	ROWV((R10)(R8*1), Y14, 14, 8, 9)
	ROWV((R10)(R8*2), Y15, 15, 10, 11)
	VMOVDQU 128(DI), Y12
	VMOVDQU 160(DI), Y13
	ROWV(4(SI), Y14, 14, 0, 1)
	ROWV(4(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(4(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(4(R10), Y15, 15, 6, 7)
	ROWV(4(R10)(R8*1), Y14, 14, 8, 9)
	ROWV(4(R10)(R8*2), Y15, 15, 10, 11)
	VMOVDQU 256(DI), Y12
	VMOVDQU 288(DI), Y13
	ROWV(8(SI), Y14, 14, 0, 1)
	ROWV(8(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(8(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(8(R10), Y15, 15, 6, 7)
	ROWV(8(R10)(R8*1), Y14, 14, 8, 9)
	ROWV(8(R10)(R8*2), Y15, 15, 10, 11)
	VMOVDQU 384(DI), Y12
	VMOVDQU 416(DI), Y13
	ROWV(12(SI), Y14, 14, 0, 1)
	ROWV(12(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(12(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(12(R10), Y15, 15, 6, 7)
	ROWV(12(R10)(R8*1), Y14, 14, 8, 9)
	ROWV(12(R10)(R8*2), Y15, 15, 10, 11)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $512, DI
	DECQ CX
	JNZ loop6
	JMP store

loop4:
	VMOVDQU 0(DI), Y12
	VMOVDQU 32(DI), Y13
	ROWV((SI), Y14, 14, 0, 1)
	ROWV((SI)(R8*1), Y15, 15, 2, 3)
	ROWV((SI)(R8*2), Y14, 14, 4, 5)
	ROWV((R10), Y15, 15, 6, 7)
	VMOVDQU 128(DI), Y12
	VMOVDQU 160(DI), Y13
	ROWV(4(SI), Y14, 14, 0, 1)
	ROWV(4(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(4(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(4(R10), Y15, 15, 6, 7)
	VMOVDQU 256(DI), Y12
	VMOVDQU 288(DI), Y13
	ROWV(8(SI), Y14, 14, 0, 1)
	ROWV(8(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(8(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(8(R10), Y15, 15, 6, 7)
	VMOVDQU 384(DI), Y12
	VMOVDQU 416(DI), Y13
	ROWV(12(SI), Y14, 14, 0, 1)
	ROWV(12(SI)(R8*1), Y15, 15, 2, 3)
	ROWV(12(SI)(R8*2), Y14, 14, 4, 5)
	ROWV(12(R10), Y15, 15, 6, 7)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $512, DI
	DECQ CX
	JNZ loop4
	JMP store

loop2:
	VMOVDQU 0(DI), Y12
	VMOVDQU 32(DI), Y13
	ROWV((SI), Y14, 14, 0, 1)
	ROWV((SI)(R8*1), Y15, 15, 2, 3)
	VMOVDQU 128(DI), Y12
	VMOVDQU 160(DI), Y13
	ROWV(4(SI), Y14, 14, 0, 1)
	ROWV(4(SI)(R8*1), Y15, 15, 2, 3)
	VMOVDQU 256(DI), Y12
	VMOVDQU 288(DI), Y13
	ROWV(8(SI), Y14, 14, 0, 1)
	ROWV(8(SI)(R8*1), Y15, 15, 2, 3)
	VMOVDQU 384(DI), Y12
	VMOVDQU 416(DI), Y13
	ROWV(12(SI), Y14, 14, 0, 1)
	ROWV(12(SI)(R8*1), Y15, 15, 2, 3)
	ADDQ $16, SI
	ADDQ $512, DI
	DECQ CX
	JNZ loop2

store:
	MOVQ product_scale(AX), DI
	MOVQ product_low(AX), CX
	STORE(Y0, Y1)
	STORE(Y2, Y3)
	STORE(Y4, Y5)
	STORE(Y6, Y7)
	STORE(Y8, Y9)
	STORE(Y10, Y11)
	MOVQ start-8(SP), SI
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*2), SI
	JMP block

done:
	VZEROUPPER
	RET

// func productAVX2(p *product)
TEXT ·productAVX2(SB), NOSPLIT, $8-8
	MOVQ p+0(FP), AX
	MOVQ product_rows(AX), R13
	MOVQ product_a(AX), SI
	MOVQ product_lda(AX), R8
	MOVQ product_c(AX), DX
	MOVQ product_ldc(AX), R9
	MOVQ product_from(AX), BX
	MOVQ product_ldfrom(AX), R15
	MOVQ product_colScale(AX), R11
	MOVQ product_colSum(AX), R12
	SHLQ $2, R9                // strides in bytes
	SHLQ $2, R15
	XORQ R14, R14

block:
	MOVQ SI, start-8(SP)
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*1), R10       // the fourth row
	MOVQ product_b(AX), DI
	MOVQ product_steps(AX), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	CMPQ R13, $2
	JLE loop2
	CMPQ R13, $4
	JLE loop4

loop6:
	VPMOVSXBW 0(DI), Y12
	VPMOVSXBW 16(DI), Y13
	ROWW((SI), Y0, Y1)
	ROWW((SI)(R8*1), Y2, Y3)
	ROWW((SI)(R8*2), Y4, Y5)
	ROWW((R10), Y6, Y7)
	ROWW((R10)(R8*1), Y8, Y9)
	ROWW((R10)(R8*2), Y10, Y11)
	VPMOVSXBW 64(DI), Y12
	VPMOVSXBW 80(DI), Y13
	ROWW(4(SI), Y0, Y1)
	ROWW(4(SI)(R8*1), Y2, Y3)
	ROWW(4(SI)(R8*2), Y4, Y5)
	ROWW(4(R10), Y6, Y7)
	ROWW(4(R10)(R8*1), Y8, Y9)
	ROWW(4(R10)(R8*2), Y10, Y11)
	VPMOVSXBW 128(DI), Y12
	VPMOVSXBW 144(DI), Y13
	ROWW(8(SI), Y0, Y1)
	ROWW(8(SI)(R8*1), Y2, Y3)
	ROWW(8(SI)(R8*2), Y4, Y5)
	ROWW(8(R10), Y6, Y7)
	ROWW(8(R10)(R8*1), Y8, Y9)
	ROWW(8(R10)(R8*2), Y10, Y11)
	VPMOVSXBW 192(DI), Y12
	VPMOVSXBW 208(DI), Y13
	ROWW(12(SI), Y0, Y1)
	ROWW(12(SI)(R8*1), Y2, Y3)
	ROWW(12(SI)(R8*2), Y4, Y5)
	ROWW(12(R10), Y6, Y7)
	ROWW(12(R10)(R8*1), Y8, Y9)
	ROWW(12(R10)(R8*2), Y10, Y11)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $256, DI
	DECQ CX
	JNZ loop6
	JMP store

loop4:
	VPMOVSXBW 0(DI), Y12
	VPMOVSXBW 16(DI), Y13
	ROWW((SI), Y0, Y1)
	ROWW((SI)(R8*1), Y2, Y3)
	ROWW((SI)(R8*2), Y4, Y5)
	ROWW((R10), Y6, Y7)
	VPMOVSXBW 64(DI), Y12
	VPMOVSXBW 80(DI), Y13
	ROWW(4(SI), Y0, Y1)
	ROWW(4(SI)(R8*1), Y2, Y3)
	ROWW(4(SI)(R8*2), Y4, Y5)
	ROWW(4(R10), Y6, Y7)
	VPMOVSXBW 128(DI), Y12
	VPMOVSXBW 144(DI), Y13
	ROWW(8(SI), Y0, Y1)
	ROWW(8(SI)(R8*1), Y2, Y3)
	ROWW(8(SI)(R8*2), Y4, Y5)
	ROWW(8(R10), Y6, Y7)
	VPMOVSXBW 192(DI), Y12
	VPMOVSXBW 208(DI), Y13
	ROWW(12(SI), Y0, Y1)
	ROWW(12(SI)(R8*1), Y2, Y3)
	ROWW(12(SI)(R8*2), Y4, Y5)
	ROWW(12(R10), Y6, Y7)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $256, DI
	DECQ CX
	JNZ loop4
	JMP store

loop2:
	VPMOVSXBW 0(DI), Y12
	VPMOVSXBW 16(DI), Y13
	ROWW((SI), Y0, Y1)
	ROWW((SI)(R8*1), Y2, Y3)
	VPMOVSXBW 64(DI), Y12
	VPMOVSXBW 80(DI), Y13
	ROWW(4(SI), Y0, Y1)
	ROWW(4(SI)(R8*1), Y2, Y3)
	VPMOVSXBW 128(DI), Y12
	VPMOVSXBW 144(DI), Y13
	ROWW(8(SI), Y0, Y1)
	ROWW(8(SI)(R8*1), Y2, Y3)
	VPMOVSXBW 192(DI), Y12
	VPMOVSXBW 208(DI), Y13
	ROWW(12(SI), Y0, Y1)
	ROWW(12(SI)(R8*1), Y2, Y3)
	ADDQ $16, SI
	ADDQ $256, DI
	DECQ CX
	JNZ loop2

store:
	MOVQ product_scale(AX), DI
	MOVQ product_low(AX), CX
	STORE(Y0, Y1)
	STORE(Y2, Y3)
	STORE(Y4, Y5)
	STORE(Y6, Y7)
	STORE(Y8, Y9)
	STORE(Y10, Y11)
	MOVQ start-8(SP), SI
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*2), SI
	JMP block

done:
	VZEROUPPER
	RET
