#include "textflag.h"
#include "go_asm.h"

// VDPBF16PS, which Go's assembler does not know: C += A·B, pairs of bfloat16 in each
// float. The macro spells out its bytes: the EVEX prefix, in which high bits of the
// registers' numbers stand inverted, the opcode, and the registers.
#define DPBF16(B, A, C) \
	BYTE $0x62; \
	BYTE $(0xF2^((C&8)<<4)^((B&16)<<2)^((B&8)<<2)^(C&16)); \
	BYTE $(0x7E^((A&15)<<3)); \
	BYTE $(0x48^((A&16)>>1)); \
	BYTE $0x52; \
	BYTE $(0xC0|((C&7)<<3)|(B&7))

// Z is a register, T, LO and HI are numbers of registers. Blocks are as in productVNNI.
#define ROW(X, Z, T, LO, HI) \
	VPBROADCASTD X, Z; \
	DPBF16(24, T, LO); \
	DPBF16(25, T, HI)

#define STORE(LO, HI) \
	VADDPS (BX), LO, LO; \
	VADDPS 64(BX), HI, HI; \
	VMOVUPS LO, (DX); \
	VMOVUPS HI, 64(DX); \
	ADDQ R15, BX; \
	ADDQ R9, DX; \
	DECQ R13; \
	JZ done

// func productBF16(p *product)
TEXT ·productBF16(SB), NOSPLIT, $8-8
	MOVQ p+0(FP), AX
	MOVQ product_rows(AX), R13
	MOVQ product_a(AX), SI
	MOVQ product_lda(AX), R8
	MOVQ product_c(AX), DX
	MOVQ product_ldc(AX), R9
	MOVQ product_from(AX), BX
	MOVQ product_ldfrom(AX), R15
	SHLQ $2, R9                // strides in bytes
	SHLQ $2, R15

block:
	MOVQ SI, start-8(SP)
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*1), R10       // every third row has a pointer
	LEAQ (R10)(CX*1), R11
	LEAQ (R11)(CX*1), R12
	MOVQ product_b(AX), DI
	MOVQ product_steps(AX), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	VPXORD Z18, Z18, Z18
	VPXORD Z19, Z19, Z19
	VPXORD Z20, Z20, Z20
	VPXORD Z21, Z21, Z21
	VPXORD Z22, Z22, Z22
	VPXORD Z23, Z23, Z23
	CMPQ R13, $4
	JLE loop4
	CMPQ R13, $8
	JLE loop8

loop12:
	VMOVDQU64 0(DI), Z24
	VMOVDQU64 64(DI), Z25
	ROW((SI), Z26, 26, 0, 1)
	ROW((SI)(R8*1), Z27, 27, 2, 3)
	ROW((SI)(R8*2), Z28, 28, 4, 5)
	ROW((R10), Z29, 29, 6, 7)
	ROW((R10)(R8*1), Z26, 26, 8, 9)
	ROW((R10)(R8*2), Z27, 27, 10, 11)
	ROW((R11), Z28, 28, 12, 13)
	ROW((R11)(R8*1), Z29, 29, 14, 15)
	ROW((R11)(R8*2), Z26, 26, 16, 17)
	ROW((R12), Z27, 27, 18, 19)
	ROW((R12)(R8*1), Z28, 28, 20, 21)
	ROW((R12)(R8*2), Z29, 29, 22, 23)
	VMOVDQU64 128(DI), Z24
	VMOVDQU64 192(DI), Z25
	ROW(4(SI), Z26, 26, 0, 1)
	ROW(4(SI)(R8*1), Z27, 27, 2, 3)
	ROW(4(SI)(R8*2), Z28, 28, 4, 5)
	ROW(4(R10), Z29, 29, 6, 7)
	ROW(4(R10)(R8*1), Z26, 26, 8, 9)
	ROW(4(R10)(R8*2), Z27, 27, 10, 11)
	ROW(4(R11), Z28, 28, 12, 13)
	ROW(4(R11)(R8*1), Z29, 29, 14, 15)
	ROW(4(R11)(R8*2), Z26, 26, 16, 17)
	ROW(4(R12), Z27, 27, 18, 19)
	ROW(4(R12)(R8*1), Z28, 28, 20, 21)
	ROW(4(R12)(R8*2), Z29, 29, 22, 23)
	VMOVDQU64 256(DI), Z24
	VMOVDQU64 320(DI), Z25
	ROW(8(SI), Z26, 26, 0, 1)
	ROW(8(SI)(R8*1), Z27, 27, 2, 3)
	ROW(8(SI)(R8*2), Z28, 28, 4, 5)
	ROW(8(R10), Z29, 29, 6, 7)
	ROW(8(R10)(R8*1), Z26, 26, 8, 9)
	ROW(8(R10)(R8*2), Z27, 27, 10, 11)
	ROW(8(R11), Z28, 28, 12, 13)
	ROW(8(R11)(R8*1), Z29, 29, 14, 15)
	ROW(8(R11)(R8*2), Z26, 26, 16, 17)
	ROW(8(R12), Z27, 27, 18, 19)
	ROW(8(R12)(R8*1), Z28, 28, 20, 21)
	ROW(8(R12)(R8*2), Z29, 29, 22, 23)
	VMOVDQU64 384(DI), Z24
	VMOVDQU64 448(DI), Z25
	ROW(12(SI), Z26, 26, 0, 1)
	ROW(12(SI)(R8*1), Z27, 27, 2, 3)
	ROW(12(SI)(R8*2), Z28, 28, 4, 5)
	ROW(12(R10), Z29, 29, 6, 7)
	ROW(12(R10)(R8*1), Z26, 26, 8, 9)
	ROW(12(R10)(R8*2), Z27, 27, 10, 11)
	ROW(12(R11), Z28, 28, 12, 13)
	ROW(12(R11)(R8*1), Z29, 29, 14, 15)
	ROW(12(R11)(R8*2), Z26, 26, 16, 17)
	ROW(12(R12), Z27, 27, 18, 19)
	ROW(12(R12)(R8*1), Z28, 28, 20, 21)
	ROW(12(R12)(R8*2), Z29, 29, 22, 23)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $16, R11
	ADDQ $16, R12
	ADDQ $512, DI
	DECQ CX
	JNZ loop12
	JMP store

loop8:
	VMOVDQU64 0(DI), Z24
	VMOVDQU64 64(DI), Z25
	ROW((SI), Z26, 26, 0, 1)
	ROW((SI)(R8*1), Z27, 27, 2, 3)
	ROW((SI)(R8*2), Z28, 28, 4, 5)
	ROW((R10), Z29, 29, 6, 7)
	ROW((R10)(R8*1), Z26, 26, 8, 9)
	ROW((R10)(R8*2), Z27, 27, 10, 11)
	ROW((R11), Z28, 28, 12, 13)
	ROW((R11)(R8*1), Z29, 29, 14, 15)
	VMOVDQU64 128(DI), Z24
	VMOVDQU64 192(DI), Z25
	ROW(4(SI), Z26, 26, 0, 1)
	ROW(4(SI)(R8*1), Z27, 27, 2, 3)
	ROW(4(SI)(R8*2), Z28, 28, 4, 5)
	ROW(4(R10), Z29, 29, 6, 7)
	ROW(4(R10)(R8*1), Z26, 26, 8, 9)
	ROW(4(R10)(R8*2), Z27, 27, 10, 11)
	ROW(4(R11), Z28, 28, 12, 13)
	ROW(4(R11)(R8*1), Z29, 29, 14, 15)
	VMOVDQU64 256(DI), Z24
	VMOVDQU64 320(DI), Z25
	ROW(8(SI), Z26, 26, 0, 1)
	ROW(8(SI)(R8*1), Z27, 27, 2, 3)
	ROW(8(SI)(R8*2), Z28, 28, 4, 5)
	ROW(8(R10), Z29, 29, 6, 7)
	ROW(8(R10)(R8*1), Z26, 26, 8, 9)
	ROW(8(R10)(R8*2), Z27, 27, 10, 11)
	ROW(8(R11), Z28, 28, 12, 13)
	ROW(8(R11)(R8*1), Z29, 29, 14, 15)
	VMOVDQU64 384(DI), Z24
	VMOVDQU64 448(DI), Z25
	ROW(12(SI), Z26, 26, 0, 1)
	ROW(12(SI)(R8*1), Z27, 27, 2, 3)
	ROW(12(SI)(R8*2), Z28, 28, 4, 5)
	ROW(12(R10), Z29, 29, 6, 7)
	ROW(12(R10)(R8*1), Z26, 26, 8, 9)
	ROW(12(R10)(R8*2), Z27, 27, 10, 11)
	ROW(12(R11), Z28, 28, 12, 13)
	ROW(12(R11)(R8*1), Z29, 29, 14, 15)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $16, R11
	ADDQ $512, DI
	DECQ CX
	JNZ loop8
	JMP store

loop4:
	VMOVDQU64 0(DI), Z24
	VMOVDQU64 64(DI), Z25
	ROW((SI), Z26, 26, 0, 1)
	ROW((SI)(R8*1), Z27, 27, 2, 3)
	ROW((SI)(R8*2), Z28, 28, 4, 5)
	ROW((R10), Z29, 29, 6, 7)
	VMOVDQU64 128(DI), Z24
	VMOVDQU64 192(DI), Z25
	ROW(4(SI), Z26, 26, 0, 1)
	ROW(4(SI)(R8*1), Z27, 27, 2, 3)
	ROW(4(SI)(R8*2), Z28, 28, 4, 5)
	ROW(4(R10), Z29, 29, 6, 7)
	VMOVDQU64 256(DI), Z24
	VMOVDQU64 320(DI), Z25
	ROW(8(SI), Z26, 26, 0, 1)
	ROW(8(SI)(R8*1), Z27, 27, 2, 3)
	ROW(8(SI)(R8*2), Z28, 28, 4, 5)
	ROW(8(R10), Z29, 29, 6, 7)
	VMOVDQU64 384(DI), Z24
	VMOVDQU64 448(DI), Z25
	ROW(12(SI), Z26, 26, 0, 1)
	ROW(12(SI)(R8*1), Z27, 27, 2, 3)
	ROW(12(SI)(R8*2), Z28, 28, 4, 5)
	ROW(12(R10), Z29, 29, 6, 7)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $512, DI
	DECQ CX
	JNZ loop4

store:
	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	STORE(Z8, Z9)
	STORE(Z10, Z11)
	STORE(Z12, Z13)
	STORE(Z14, Z15)
	STORE(Z16, Z17)
	STORE(Z18, Z19)
	STORE(Z20, Z21)
	STORE(Z22, Z23)
	MOVQ start-8(SP), SI
	LEAQ (R8)(R8*2), CX
	LEAQ (SI)(CX*4), SI
	JMP block

done:
	VZEROUPPER
	RET
