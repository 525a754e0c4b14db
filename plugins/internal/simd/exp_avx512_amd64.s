#include "textflag.h"

// exp2Table is a polynomial for 2^f with |f| <= 1/2, highest power first, after exp2f in the
// Cephes library; then the smallest argument, -87·log2 e.
DATA exp2Table<>+0(SB)/4, $(1.535336188319500e-4)
DATA exp2Table<>+4(SB)/4, $(1.339887440266574e-3)
DATA exp2Table<>+8(SB)/4, $(9.618437357674640e-3)
DATA exp2Table<>+12(SB)/4, $(5.550332471162809e-2)
DATA exp2Table<>+16(SB)/4, $(2.402264791363012e-1)
DATA exp2Table<>+20(SB)/4, $(6.931472028550421e-1)
DATA exp2Table<>+24(SB)/4, $(1.0)
DATA exp2Table<>+28(SB)/4, $(-125.5144688)
GLOBL exp2Table<>(SB), RODATA|NOPTR, $32

// expRowsAVX512 is expRowsPortable with a register's worth of floats at a time: of
// t = (x-maximum)·scale·log2 e the nearest whole number is the exponent, and what is left
// the argument of a polynomial.
//
// func expRowsAVX512(x []float32, rows, cols, stride int, scale float32, sums []float32)
TEXT ·expRowsAVX512(SB), NOSPLIT, $0-80
	MOVQ x_base+0(FP), SI
	MOVQ rows+24(FP), R8
	MOVQ cols+32(FP), R9
	MOVQ stride+40(FP), R10
	VBROADCASTSS scale+48(FP), Z2
	MOVQ sums_base+56(FP), DI
	VBROADCASTSS ·expTable+4(SB), Z16
	VBROADCASTSS ·expTable+48(SB), Z17
	VBROADCASTSS exp2Table<>+0(SB), Z18
	VBROADCASTSS exp2Table<>+4(SB), Z19
	VBROADCASTSS exp2Table<>+8(SB), Z20
	VBROADCASTSS exp2Table<>+12(SB), Z21
	VBROADCASTSS exp2Table<>+16(SB), Z22
	VBROADCASTSS exp2Table<>+20(SB), Z23
	VBROADCASTSS exp2Table<>+24(SB), Z24
	VBROADCASTSS exp2Table<>+28(SB), Z25
	VMULPS Z16, Z2, Z2
	VDIVPS Z2, Z25, Z25        // the smallest x-maximum
	SHLQ $2, R10

row:
	VMOVAPS Z17, Z0
	MOVQ SI, DX
	MOVQ R9, CX

maximum:
	VMAXPS (DX), Z0, Z0
	ADDQ $64, DX
	SUBQ $16, CX
	JNZ maximum
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VMAXPS X1, X0, X0
	VBROADCASTSS X0, Z1
	VPXORD Z0, Z0, Z0
	MOVQ SI, DX
	MOVQ R9, CX

exp:
	VMOVUPS (DX), Z3
	VSUBPS Z1, Z3, Z3
	VMAXPS Z25, Z3, Z3
	VMULPS Z2, Z3, Z4
	VRNDSCALEPS $0, Z4, Z4
	VFMSUB213PS Z4, Z2, Z3
	VMOVAPS Z18, Z5
	VFMADD213PS Z19, Z3, Z5
	VFMADD213PS Z20, Z3, Z5
	VFMADD213PS Z21, Z3, Z5
	VFMADD213PS Z22, Z3, Z5
	VFMADD213PS Z23, Z3, Z5
	VFMADD213PS Z24, Z3, Z5
	VSCALEFPS Z4, Z5, Z5
	VMOVUPS Z5, (DX)
	VADDPS Z5, Z0, Z0
	ADDQ $64, DX
	SUBQ $16, CX
	JNZ exp
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VADDPS X1, X0, X0
	VMOVSS X0, (DI)
	ADDQ $4, DI
	ADDQ R10, SI
	DECQ R8
	JNZ row
	VZEROUPPER
	RET
