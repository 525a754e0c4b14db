#include "textflag.h"

// A tile function keeps a block of results in registers while it goes through
// the depth once. The block has as many rows as the caller says, one of three
// numbers, so that the rows that are left at the end of a matrix cost little.

// tileAVX512 computes a block of 12, 8 or 4 rows by 32 columns. Accumulators: Z0 to Z23.
#define ROW16(X, T, LO, HI) \
	VBROADCASTSS X, T; \
	VFMADD231PS Z24, T, LO; \
	VFMADD231PS Z25, T, HI

#define STORE16(LO, HI) \
	VMOVUPS LO, (DX); \
	VMOVUPS HI, 64(DX); \
	ADDQ R9, DX

// func tileAVX512(rows, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32)
TEXT ·tileAVX512(SB), NOSPLIT, $0-136
	MOVQ rows+0(FP), R13
	MOVQ depth+8(FP), CX
	MOVQ a_base+16(FP), SI
	MOVQ lda+40(FP), R8
	MOVQ b_base+48(FP), DI
	MOVQ ldb+72(FP), R15
	MOVQ c_base+80(FP), DX
	MOVQ ldc+104(FP), R9
	MOVQ bias_base+112(FP), AX
	SHLQ $2, R8            // strides in bytes
	SHLQ $2, R9
	SHLQ $2, R15
	LEAQ (R8)(R8*2), BX
	LEAQ (SI)(BX*1), R10   // every third row has a pointer
	LEAQ (R10)(BX*1), R11
	LEAQ (R11)(BX*1), R12
	VMOVUPS (AX), Z0
	VMOVUPS 64(AX), Z1
	VMOVAPS Z0, Z2
	VMOVAPS Z1, Z3
	VMOVAPS Z0, Z4
	VMOVAPS Z1, Z5
	VMOVAPS Z0, Z6
	VMOVAPS Z1, Z7
	VMOVAPS Z0, Z8
	VMOVAPS Z1, Z9
	VMOVAPS Z0, Z10
	VMOVAPS Z1, Z11
	VMOVAPS Z0, Z12
	VMOVAPS Z1, Z13
	VMOVAPS Z0, Z14
	VMOVAPS Z1, Z15
	VMOVAPS Z0, Z16
	VMOVAPS Z1, Z17
	VMOVAPS Z0, Z18
	VMOVAPS Z1, Z19
	VMOVAPS Z0, Z20
	VMOVAPS Z1, Z21
	VMOVAPS Z0, Z22
	VMOVAPS Z1, Z23
	TESTQ CX, CX
	JZ store
	CMPQ R13, $4
	JEQ loop4
	CMPQ R13, $8
	JEQ loop8

loop12:
	VMOVUPS (DI), Z24
	VMOVUPS 64(DI), Z25
	ROW16((SI), Z26, Z0, Z1)
	ROW16((SI)(R8*1), Z27, Z2, Z3)
	ROW16((SI)(R8*2), Z28, Z4, Z5)
	ROW16((R10), Z29, Z6, Z7)
	ROW16((R10)(R8*1), Z26, Z8, Z9)
	ROW16((R10)(R8*2), Z27, Z10, Z11)
	ROW16((R11), Z28, Z12, Z13)
	ROW16((R11)(R8*1), Z29, Z14, Z15)
	ROW16((R11)(R8*2), Z26, Z16, Z17)
	ROW16((R12), Z27, Z18, Z19)
	ROW16((R12)(R8*1), Z28, Z20, Z21)
	ROW16((R12)(R8*2), Z29, Z22, Z23)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ $4, R11
	ADDQ $4, R12
	ADDQ R15, DI
	DECQ CX
	JNZ loop12
	JMP store

loop8:
	VMOVUPS (DI), Z24
	VMOVUPS 64(DI), Z25
	ROW16((SI), Z26, Z0, Z1)
	ROW16((SI)(R8*1), Z27, Z2, Z3)
	ROW16((SI)(R8*2), Z28, Z4, Z5)
	ROW16((R10), Z29, Z6, Z7)
	ROW16((R10)(R8*1), Z26, Z8, Z9)
	ROW16((R10)(R8*2), Z27, Z10, Z11)
	ROW16((R11), Z28, Z12, Z13)
	ROW16((R11)(R8*1), Z29, Z14, Z15)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ $4, R11
	ADDQ R15, DI
	DECQ CX
	JNZ loop8
	JMP store

loop4:
	VMOVUPS (DI), Z24
	VMOVUPS 64(DI), Z25
	ROW16((SI), Z26, Z0, Z1)
	ROW16((SI)(R8*1), Z27, Z2, Z3)
	ROW16((SI)(R8*2), Z28, Z4, Z5)
	ROW16((R10), Z29, Z6, Z7)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ R15, DI
	DECQ CX
	JNZ loop4

store:
	STORE16(Z0, Z1)
	STORE16(Z2, Z3)
	STORE16(Z4, Z5)
	STORE16(Z6, Z7)
	CMPQ R13, $4
	JEQ done
	STORE16(Z8, Z9)
	STORE16(Z10, Z11)
	STORE16(Z12, Z13)
	STORE16(Z14, Z15)
	CMPQ R13, $8
	JEQ done
	STORE16(Z16, Z17)
	STORE16(Z18, Z19)
	STORE16(Z20, Z21)
	STORE16(Z22, Z23)

done:
	VZEROUPPER
	RET

// tileAVX2 computes a block of 6, 4 or 2 rows by 16 columns. Accumulators: Y0 to Y11.
#define ROW8(X, T, LO, HI) \
	VBROADCASTSS X, T; \
	VFMADD231PS Y12, T, LO; \
	VFMADD231PS Y13, T, HI

#define STORE8(LO, HI) \
	VMOVUPS LO, (DX); \
	VMOVUPS HI, 32(DX); \
	ADDQ R9, DX

// func tileAVX2(rows, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32)
TEXT ·tileAVX2(SB), NOSPLIT, $0-136
	MOVQ rows+0(FP), R13
	MOVQ depth+8(FP), CX
	MOVQ a_base+16(FP), SI
	MOVQ lda+40(FP), R8
	MOVQ b_base+48(FP), DI
	MOVQ ldb+72(FP), R15
	MOVQ c_base+80(FP), DX
	MOVQ ldc+104(FP), R9
	MOVQ bias_base+112(FP), AX
	SHLQ $2, R8            // strides in bytes
	SHLQ $2, R9
	SHLQ $2, R15
	LEAQ (R8)(R8*2), BX
	LEAQ (SI)(BX*1), R10   // every third row has a pointer
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y1, Y3
	VMOVAPS Y0, Y4
	VMOVAPS Y1, Y5
	VMOVAPS Y0, Y6
	VMOVAPS Y1, Y7
	VMOVAPS Y0, Y8
	VMOVAPS Y1, Y9
	VMOVAPS Y0, Y10
	VMOVAPS Y1, Y11
	TESTQ CX, CX
	JZ store
	CMPQ R13, $2
	JEQ loop2
	CMPQ R13, $4
	JEQ loop4

loop6:
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	ROW8((SI), Y14, Y0, Y1)
	ROW8((SI)(R8*1), Y15, Y2, Y3)
	ROW8((SI)(R8*2), Y14, Y4, Y5)
	ROW8((R10), Y15, Y6, Y7)
	ROW8((R10)(R8*1), Y14, Y8, Y9)
	ROW8((R10)(R8*2), Y15, Y10, Y11)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ R15, DI
	DECQ CX
	JNZ loop6
	JMP store

loop4:
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	ROW8((SI), Y14, Y0, Y1)
	ROW8((SI)(R8*1), Y15, Y2, Y3)
	ROW8((SI)(R8*2), Y14, Y4, Y5)
	ROW8((R10), Y15, Y6, Y7)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ R15, DI
	DECQ CX
	JNZ loop4
	JMP store

loop2:
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	ROW8((SI), Y14, Y0, Y1)
	ROW8((SI)(R8*1), Y15, Y2, Y3)
	ADDQ $4, SI
	ADDQ R15, DI
	DECQ CX
	JNZ loop2

store:
	STORE8(Y0, Y1)
	STORE8(Y2, Y3)
	CMPQ R13, $2
	JEQ done
	STORE8(Y4, Y5)
	STORE8(Y6, Y7)
	CMPQ R13, $4
	JEQ done
	STORE8(Y8, Y9)
	STORE8(Y10, Y11)

done:
	VZEROUPPER
	RET
