#include "textflag.h"

// The query is a multiple of 64 (VNNI) or 32 (AVX2) bytes long, dst a multiple
// of four; see Kernel.DotInt8. Four rows are worked on at a time, with a pointer
// at the first of them, SI, and the distance of the fourth in R9.

// FETCH reads a byte of each cache line of the next eight rows, or of those that are left,
// in the order of memory. Rows that are not in a cache come twice as fast that way: the
// processor foresees one stream better than four. R13 is where the next ones begin.
#define FETCH \
	CMPQ SI, R13; \
	JLT fetched; \
	MOVQ $8, R11; \
	CMPQ BX, R11; \
	CMOVQLT BX, R11; \
	IMULQ R8, R11; \
	ADDQ R11, R13; \
	MOVQ SI, R10; \
fetch: \
	MOVBLZX (R10), R11; \
	ADDQ $64, R10; \
	CMPQ R10, R13; \
	JLT fetch; \
fetched:

DATA int8Sign<>+0(SB)/4, $0x80808080
GLOBL int8Sign<>(SB), RODATA|NOPTR, $4

// VPDPBUSD multiplies unsigned with signed bytes. The rows are made unsigned by
// adding 128 to each byte, which is what flipping the sign bit does, and the sum
// of 128 times the query is taken off again: it is what Z31 starts with, negated.

#define ROW64(ROW, SUM) \
	VPXORD ROW, Z30, Z4; \
	VPDPBUSD Z5, Z4, SUM

// func dotInt8VNNI(dst []int32, query, rows []int8, stride int)
TEXT ·dotInt8VNNI(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DX
	MOVQ dst_len+8(FP), BX
	MOVQ query_base+24(FP), DI
	MOVQ query_len+32(FP), CX
	MOVQ rows_base+48(FP), SI
	MOVQ stride+72(FP), R8
	LEAQ (R8)(R8*2), R9
	VPBROADCASTD int8Sign<>(SB), Z30
	VPXORD Z31, Z31, Z31
	MOVQ SI, R13
	XORQ AX, AX

sum:
	VPDPBUSD (DI)(AX*1), Z30, Z31
	ADDQ $64, AX
	CMPQ AX, CX
	JLT sum
	VPXORD Z0, Z0, Z0
	VPSUBD Z31, Z0, Z31

rows:
	FETCH
	VMOVDQA64 Z31, Z0
	VMOVDQA64 Z31, Z1
	VMOVDQA64 Z31, Z2
	VMOVDQA64 Z31, Z3
	MOVQ SI, R10
	XORQ AX, AX

loop:
	VMOVDQU64 (DI)(AX*1), Z5
	ROW64((R10), Z0)
	ROW64((R10)(R8*1), Z1)
	ROW64((R10)(R8*2), Z2)
	ROW64((R10)(R9*1), Z3)
	ADDQ $64, R10
	ADDQ $64, AX
	CMPQ AX, CX
	JLT loop

	VEXTRACTI64X4 $1, Z0, Y4
	VEXTRACTI64X4 $1, Z1, Y5
	VEXTRACTI64X4 $1, Z2, Y6
	VEXTRACTI64X4 $1, Z3, Y7
	VPADDD Y4, Y0, Y0
	VPADDD Y5, Y1, Y1
	VPADDD Y6, Y2, Y2
	VPADDD Y7, Y3, Y3
	VPHADDD Y1, Y0, Y0
	VPHADDD Y3, Y2, Y2
	VPHADDD Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VMOVDQU X0, (DX)
	LEAQ (SI)(R8*4), SI
	ADDQ $16, DX
	SUBQ $4, BX
	JNZ rows
	VZEROUPPER
	RET

#define QUERY(CODES, A, B, C, D) \
	VPBROADCASTD CODES, Z20; \
	VPDPBUSD Z20, Z16, A; \
	VPDPBUSD Z20, Z17, B; \
	VPDPBUSD Z20, Z18, C; \
	VPDPBUSD Z20, Z19, D

#define START(OF, A, B, C, D) \
	VPBROADCASTD OF, A; \
	VMOVDQA64 A, B; \
	VMOVDQA64 A, C; \
	VMOVDQA64 A, D

#define STORE(AT, A, B, C, D) \
	VMOVDQU64 A, AT(DX); \
	VMOVDQU64 B, AT+64(DX); \
	VMOVDQU64 C, AT+128(DX); \
	VMOVDQU64 D, AT+192(DX)

// func dotGroupVNNI(dst *[256]int32, start []int32, codes, packed []int8)
TEXT ·dotGroupVNNI(SB), NOSPLIT, $0-80
	MOVQ dst+0(FP), DX
	MOVQ start_base+8(FP), BX
	MOVQ codes_base+32(FP), DI
	MOVQ codes_len+40(FP), R8
	MOVQ packed_base+56(FP), SI
	SHRQ $2, R8           // the length of a query
	LEAQ (R8)(R8*2), R9
	LEAQ (DI)(R8*1), CX
	VPBROADCASTD int8Sign<>(SB), Z30
	START((BX), Z0, Z1, Z2, Z3)
	START(4(BX), Z4, Z5, Z6, Z7)
	START(8(BX), Z8, Z9, Z10, Z11)
	START(12(BX), Z12, Z13, Z14, Z15)

loop:
	VPXORD (SI), Z30, Z16
	VPXORD 64(SI), Z30, Z17
	VPXORD 128(SI), Z30, Z18
	VPXORD 192(SI), Z30, Z19
	QUERY((DI), Z0, Z1, Z2, Z3)
	QUERY((DI)(R8*1), Z4, Z5, Z6, Z7)
	QUERY((DI)(R8*2), Z8, Z9, Z10, Z11)
	QUERY((DI)(R9*1), Z12, Z13, Z14, Z15)
	ADDQ $256, SI
	ADDQ $4, DI
	CMPQ DI, CX
	JLT loop
	STORE(0, Z0, Z1, Z2, Z3)
	STORE(256, Z4, Z5, Z6, Z7)
	STORE(512, Z8, Z9, Z10, Z11)
	STORE(768, Z12, Z13, Z14, Z15)
	VZEROUPPER
	RET

// VPMADDUBSW multiplies unsigned with signed bytes and adds pairs into words,
// which do not overflow: 2·127·127 < 2^15. The rows are made unsigned by giving
// the query the sign of the row.

#define ROW32(ROW, SUM) \
	VMOVDQU ROW, Y6; \
	VPABSB Y6, Y7; \
	VPSIGNB Y6, Y5, Y6; \
	VPMADDUBSW Y6, Y7, Y6; \
	VPMADDWD Y4, Y6, Y6; \
	VPADDD Y6, SUM, SUM

// func dotInt8AVX2(dst []int32, query, rows []int8, stride int)
TEXT ·dotInt8AVX2(SB), NOSPLIT, $0-80
	MOVQ dst_base+0(FP), DX
	MOVQ dst_len+8(FP), BX
	MOVQ query_base+24(FP), DI
	MOVQ query_len+32(FP), CX
	MOVQ rows_base+48(FP), SI
	MOVQ stride+72(FP), R8
	LEAQ (R8)(R8*2), R9
	VPCMPEQW Y4, Y4, Y4
	VPSRLW $15, Y4, Y4     // ones
	MOVQ SI, R13

rows:
	FETCH
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	MOVQ SI, R10
	XORQ AX, AX

loop:
	VMOVDQU (DI)(AX*1), Y5
	ROW32((R10), Y0)
	ROW32((R10)(R8*1), Y1)
	ROW32((R10)(R8*2), Y2)
	ROW32((R10)(R9*1), Y3)
	ADDQ $32, R10
	ADDQ $32, AX
	CMPQ AX, CX
	JLT loop

	VPHADDD Y1, Y0, Y0
	VPHADDD Y3, Y2, Y2
	VPHADDD Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VMOVDQU X0, (DX)
	LEAQ (SI)(R8*4), SI
	ADDQ $16, DX
	SUBQ $4, BX
	JNZ rows
	VZEROUPPER
	RET

// func reachAVX512(dots []int32, rows []Quantisation, b *Bound) uint64
// There are 16, 32, 48 or 64 rows; see Kernel.Reach.
TEXT ·reachAVX512(SB), NOSPLIT, $0-64
	MOVQ dots_base+0(FP), SI
	MOVQ dots_len+8(FP), BX
	MOVQ rows_base+24(FP), DI
	MOVQ b+48(FP), DX
	VBROADCASTSS 0(DX), Z0  // Scale
	VBROADCASTSS 4(DX), Z1  // Slope
	VBROADCASTSS 8(DX), Z2  // Slack
	VBROADCASTSS 12(DX), Z3 // Least
	XORQ AX, AX
	XORQ CX, CX

loop:
	VMOVDQU64 (DI), Z5
	VMOVDQU64 64(DI), Z6
	VPMOVQD Z5, Y7
	VPMOVQD Z6, Y8
	VINSERTI64X4 $1, Y8, Z7, Z7 // scales
	VPSRLQ $32, Z5, Z5
	VPSRLQ $32, Z6, Z6
	VPMOVQD Z5, Y8
	VPMOVQD Z6, Y9
	VINSERTI64X4 $1, Y9, Z8, Z8 // what was lost
	VCVTDQ2PS (SI), Z4
	VMULPS Z0, Z4, Z4
	VMULPS Z7, Z4, Z4
	VMULPS Z1, Z8, Z8
	VADDPS Z2, Z8, Z8
	VADDPS Z8, Z4, Z4
	VCMPPS $5, Z3, Z4, K1 // not less
	KMOVW K1, R8
	SHLQ CX, R8
	ORQ R8, AX
	ADDQ $64, SI
	ADDQ $128, DI
	ADDQ $16, CX
	CMPQ CX, BX
	JLT loop
	MOVQ AX, ret+56(FP)
	VZEROUPPER
	RET
