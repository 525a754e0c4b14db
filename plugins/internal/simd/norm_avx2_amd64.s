#include "textflag.h"

// The parts of a layer norm. The slices hold a multiple of 8 floats; see Kernel.lanes.
// Two sums are kept, so that the additions do not wait for each other.

// func addSumAVX2(x, y []float32) float32
TEXT ·addSumAVX2(SB), NOSPLIT, $0-52
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	MOVQ y_base+24(FP), DI
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ $16, CX
	JL rest

loop:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VADDPS (DI), Y0, Y0
	VADDPS 32(DI), Y1, Y1
	VMOVUPS Y0, (SI)
	VMOVUPS Y1, 32(SI)
	VADDPS Y0, Y2, Y2
	VADDPS Y1, Y3, Y3
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGE loop

rest:
	ADDQ $16, CX
	JZ fold
	VMOVUPS (SI), Y0
	VADDPS (DI), Y0, Y0
	VMOVUPS Y0, (SI)
	VADDPS Y0, Y2, Y2

fold:
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

// func squaresAVX2(x []float32, mean float32) float32
TEXT ·squaresAVX2(SB), NOSPLIT, $0-36
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Y4
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ $16, CX
	JL rest

loop:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VSUBPS Y4, Y0, Y0
	VSUBPS Y4, Y1, Y1
	VFMADD231PS Y0, Y0, Y2
	VFMADD231PS Y1, Y1, Y3
	ADDQ $64, SI
	SUBQ $16, CX
	JGE loop

rest:
	ADDQ $16, CX
	JZ fold
	VMOVUPS (SI), Y0
	VSUBPS Y4, Y0, Y0
	VFMADD231PS Y0, Y0, Y2

fold:
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

// func affineAVX2(x []float32, mean, factor float32, gain, bias []float32)
TEXT ·affineAVX2(SB), NOSPLIT, $0-80
	MOVQ x_base+0(FP), SI
	MOVQ x_len+8(FP), CX
	VBROADCASTSS mean+24(FP), Y4
	VBROADCASTSS factor+28(FP), Y5
	MOVQ gain_base+32(FP), DI
	MOVQ bias_base+56(FP), DX
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Y0
	VSUBPS Y4, Y0, Y0
	VMULPS Y5, Y0, Y0
	VMOVUPS (DX), Y1
	VFMADD231PS (DI), Y0, Y1
	VMOVUPS Y1, (SI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, DX
	SUBQ $8, CX
	JNZ loop

done:
	VZEROUPPER
	RET
