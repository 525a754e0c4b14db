#include "textflag.h"

// The parts of a layer norm. The slices hold a multiple of 16 floats; see Kernel.lanes.
// Two sums are kept, so that the additions do not wait for each other.

// func addSumAVX512(x, y []float32) float32
TEXT ·addSumAVX512(SB), NOSPLIT, $0-52
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	SUBQ $32, CX
	JL rest

loop:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VADDPS (DI), Z0, Z0
	VADDPS 64(DI), Z1, Z1
	VMOVUPS Z0, (SI)
	VMOVUPS Z1, 64(SI)
	VADDPS Z0, Z2, Z2
	VADDPS Z1, Z3, Z3
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE loop

rest:
	ADDQ $32, CX
	JZ fold
	VMOVUPS (SI), Z0
	VADDPS (DI), Z0, Z0
	VMOVUPS Z0, (SI)
	VADDPS Z0, Z2, Z2

fold:
	VADDPS Z3, Z2, Z2
	VEXTRACTF64X4 $1, Z2, Y3
	VADDPS Y3, Y2, Y2
	VEXTRACTF128 $1, Y2, X3
	VADDPS X3, X2, X2
	VPERMILPS $0x4E, X2, X3
	VADDPS X3, X2, X2
	VPERMILPS $0xB1, X2, X3
	VADDPS X3, X2, X2
	VMOVSS X2, ret+48(FP)
	VZEROUPPER
	RET

// func squaresAVX512(x []float32, mean float32) float32
TEXT ·squaresAVX512(SB), NOSPLIT, $0-36
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Z4
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	SUBQ $32, CX
	JL rest

loop:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VSUBPS Z4, Z0, Z0
	VSUBPS Z4, Z1, Z1
	VFMADD231PS Z0, Z0, Z2
	VFMADD231PS Z1, Z1, Z3
	ADDQ $128, SI
	SUBQ $32, CX
	JGE loop

rest:
	ADDQ $32, CX
	JZ fold
	VMOVUPS (SI), Z0
	VSUBPS Z4, Z0, Z0
	VFMADD231PS Z0, Z0, Z2

fold:
	VADDPS Z3, Z2, Z2
	VEXTRACTF64X4 $1, Z2, Y3
	VADDPS Y3, Y2, Y2
	VEXTRACTF128 $1, Y2, X3
	VADDPS X3, X2, X2
	VPERMILPS $0x4E, X2, X3
	VADDPS X3, X2, X2
	VPERMILPS $0xB1, X2, X3
	VADDPS X3, X2, X2
	VMOVSS X2, ret+32(FP)
	VZEROUPPER
	RET

// func affineAVX512(x []float32, mean, factor float32, gain, bias []float32)
TEXT ·affineAVX512(SB), NOSPLIT, $0-80
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Z4
	VBROADCASTSS factor+28(FP), Z5
	MOVQ gain_base+32(FP), DI
	MOVQ bias_base+56(FP), DX
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VSUBPS Z4, Z0, Z0
	VMULPS Z5, Z0, Z0
	VMOVUPS (DX), Z1
	VFMADD231PS (DI), Z0, Z1
	VMOVUPS Z1, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, DX
	SUBQ $16, CX
	JNZ loop

done:
	VZEROUPPER
	RET
