#include "textflag.h"

// The slices hold a multiple of 16 (AVX-512) or 8 (AVX2) values; see Kernel.lanes.

DATA signless<>+0(SB)/4, $0x7FFFFFFF
GLOBL signless<>(SB), RODATA|NOPTR, $4

// func magnitudeAVX512(x []float32) float32
TEXT ·magnitudeAVX512(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VPBROADCASTD signless<>(SB), Z2
	VPXORD Z0, Z0, Z0
	TESTQ CX, CX
	JZ fold

loop:
	VPANDD (SI), Z2, Z1
	VMAXPS Z1, Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ loop

fold:
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func quantiseAVX512(dst []int8, x []float32, inverse float32) float32
TEXT ·quantiseAVX512(SB), NOSPLIT, $0-60
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS inverse+48(FP), Z3
	VPXORD Z0, Z0, Z0
	TESTQ CX, CX
	JZ fold

loop:
	VMULPS (SI), Z3, Z1
	VCVTPS2DQ Z1, Z2
	VPMOVDB Z2, (DI)
	VCVTDQ2PS Z2, Z2
	VSUBPS Z2, Z1, Z1
	VFMADD231PS Z1, Z1, Z0
	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JNZ loop

fold:
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VADDPS X1, X0, X0
	VMOVSS X0, ret+56(FP)
	VZEROUPPER
	RET

// func magnitudeAVX2(x []float32) float32
TEXT ·magnitudeAVX2(SB), NOSPLIT, $0-28
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS signless<>(SB), Y2
	VXORPS Y0, Y0, Y0
	TESTQ CX, CX
	JZ fold

loop:
	VANDPS (SI), Y2, Y1
	VMAXPS Y1, Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ loop

fold:
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func quantiseAVX2(dst []int8, x []float32, inverse float32) float32
TEXT ·quantiseAVX2(SB), NOSPLIT, $0-60
	MOVQ dst_base+0(FP), DI
	MOVQ x_base+24(FP), SI
	MOVQ x_len+32(FP), CX
	VBROADCASTSS inverse+48(FP), Y3
	VXORPS Y0, Y0, Y0
	TESTQ CX, CX
	JZ fold

loop:
	VMULPS (SI), Y3, Y1
	VCVTPS2DQ Y1, Y2
	VEXTRACTI128 $1, Y2, X4
	VPACKSSDW X4, X2, X4   // eight words, then bytes
	VPACKSSWB X4, X4, X4
	VMOVQ X4, (DI)
	VCVTDQ2PS Y2, Y2
	VSUBPS Y2, Y1, Y1
	VFMADD231PS Y1, Y1, Y0
	ADDQ $32, SI
	ADDQ $8, DI
	SUBQ $8, CX
	JNZ loop

fold:
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VADDPS X1, X0, X0
	VMOVSS X0, ret+56(FP)
	VZEROUPPER
	RET
