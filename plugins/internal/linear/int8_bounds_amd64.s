#include "textflag.h"

// The slices hold a multiple of 16 (AVX-512) or 8 (AVX2) floats; see unit.lanes.

// The bounds are NaN where a number is not finite: minima and maxima alone would pass over
// a NaN. What is not finite leaves a NaN when it is subtracted from itself, all else zero.

// func boundsAVX512(x []float32) (low, high float32)
TEXT ·boundsAVX512(SB), NOSPLIT, $0-32
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VMOVUPS (SI), Z0
	VMOVAPS Z0, Z1
	VSUBPS Z0, Z0, Z4
	JMP next

loop:
	VMOVUPS (SI), Z2
	VMINPS Z2, Z0, Z0
	VMAXPS Z2, Z1, Z1
	VSUBPS Z2, Z2, Z2
	VPORD Z2, Z4, Z4

next:
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ loop
	VEXTRACTF64X4 $1, Z4, Y5
	VPOR Y5, Y4, Y4
	VEXTRACTF64X4 $1, Z0, Y2
	VEXTRACTF64X4 $1, Z1, Y3
	VMINPS Y2, Y0, Y0
	VMAXPS Y3, Y1, Y1
	VEXTRACTF128 $1, Y0, X2
	VEXTRACTF128 $1, Y1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPERMILPS $0x4E, X0, X2
	VPERMILPS $0x4E, X1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPERMILPS $0xB1, X0, X2
	VPERMILPS $0xB1, X1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPTEST Y4, Y4
	JZ finite
	MOVL $0x7FC00000, AX
	VMOVD AX, X0
	VMOVAPS X0, X1

finite:
	VMOVSS X0, low+24(FP)
	VMOVSS X1, high+28(FP)
	VZEROUPPER
	RET

// func boundsAVX2(x []float32) (low, high float32)
TEXT ·boundsAVX2(SB), NOSPLIT, $0-32
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VMOVUPS (SI), Y0
	VMOVAPS Y0, Y1
	VSUBPS Y0, Y0, Y4
	JMP next

loop:
	VMOVUPS (SI), Y2
	VMINPS Y2, Y0, Y0
	VMAXPS Y2, Y1, Y1
	VSUBPS Y2, Y2, Y2
	VPOR Y2, Y4, Y4

next:
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ loop
	VEXTRACTF128 $1, Y0, X2
	VEXTRACTF128 $1, Y1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPERMILPS $0x4E, X0, X2
	VPERMILPS $0x4E, X1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPERMILPS $0xB1, X0, X2
	VPERMILPS $0xB1, X1, X3
	VMINPS X2, X0, X0
	VMAXPS X3, X1, X1
	VPTEST Y4, Y4
	JZ finite
	MOVL $0x7FC00000, AX
	VMOVD AX, X0
	VMOVAPS X0, X1

finite:
	VMOVSS X0, low+24(FP)
	VMOVSS X1, high+28(FP)
	VZEROUPPER
	RET

// func multiplyAVX512(dst, x, factors []float32)
TEXT ·multiplyAVX512(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ factors_base+48(FP), DX

loop:
	VMOVUPS (SI), Z0
	VMULPS (DX), Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, DX
	SUBQ $16, CX
	JNZ loop
	VZEROUPPER
	RET

// func multiplyAVX2(dst, x, factors []float32)
TEXT ·multiplyAVX2(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	MOVQ factors_base+48(FP), DX

loop:
	VMOVUPS (SI), Y0
	VMULPS (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, DX
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func bytesAVX512(dst []byte, x []float32, low, inverse float32)
TEXT ·bytesAVX512(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS low+48(FP), Z2
	VBROADCASTSS inverse+52(FP), Z3

loop:
	VMOVUPS (SI), Z0
	VSUBPS Z2, Z0, Z0
	VMULPS Z3, Z0, Z0
	VCVTPS2DQ Z0, Z0
	VPMOVUSDB Z0, (DI)
	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JNZ loop
	VZEROUPPER
	RET

// func bytesAVX2(dst []byte, x []float32, low, inverse float32)
TEXT ·bytesAVX2(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS low+48(FP), Y2
	VBROADCASTSS inverse+52(FP), Y3

loop:
	VMOVUPS (SI), Y0
	VSUBPS Y2, Y0, Y0
	VMULPS Y3, Y0, Y0
	VCVTPS2DQ Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW X1, X0, X0
	VPACKUSWB X0, X0, X0
	VMOVQ X0, (DI)
	ADDQ $32, SI
	ADDQ $8, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func wordsAVX2(dst []byte, x []float32, low, inverse float32)
TEXT ·wordsAVX2(SB), NOSPLIT, $0-56
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS low+48(FP), Y2
	VBROADCASTSS inverse+52(FP), Y3

loop:
	VMOVUPS (SI), Y0
	VSUBPS Y2, Y0, Y0
	VMULPS Y3, Y0, Y0
	VCVTPS2DQ Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW X1, X0, X0
	VMOVDQU X0, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
