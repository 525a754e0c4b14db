#include "textflag.h"
#include "tiles_amd64.h"

// Products of bf16x3 matrices (bf16x3.go) with the tiles of AMX.

// FETCH asks for 512 bytes to be brought into the first-level cache.
#define FETCH(OFFSET, BASE) \
	PREFETCHT0 OFFSET(BASE); \
	PREFETCHT0 (OFFSET+64)(BASE); \
	PREFETCHT0 (OFFSET+128)(BASE); \
	PREFETCHT0 (OFFSET+192)(BASE); \
	PREFETCHT0 (OFFSET+256)(BASE); \
	PREFETCHT0 (OFFSET+320)(BASE); \
	PREFETCHT0 (OFFSET+384)(BASE); \
	PREFETCHT0 (OFFSET+448)(BASE)

// multiplyTiles sets rows of c to from + a·b, 32 columns wide and two groups of rows
// at a time. Tiles 0 to 3 hold the results, 4 and 5 one part of the groups of a,
// 6 and 7 one part of the columns of b. Of the nine products of parts the three
// smallest, below the rounding of a float32, are left out. Each tile is loaded
// as soon as the last product that reads its old value is under way. Between the
// products the data of the next step is fetched: where another program keeps the
// other half of the core busy, this is half as fast again. With every step, chunks
// of 256 bytes from next on are brought into the second-level cache.
//
// func multiplyTiles(config *tileConfig, pairs, steps int, a, b, c []float32, ldc int, from []float32, ldfrom, rows int, next []float32, chunks int)
TEXT ·multiplyTiles(SB), NOSPLIT, $0-176
	MOVQ config+0(FP), AX
	TILE_CONFIG_AX
	MOVQ pairs+8(FP), R8
	MOVQ steps+16(FP), R9
	MOVQ a_base+24(FP), R11
	MOVQ c_base+72(FP), BX
	MOVQ ldc+96(FP), R13
	MOVQ from_base+104(FP), R12
	MOVQ next_base+144(FP), R15
	SHLQ $2, R13               // in bytes
	IMUL3Q $3072, R9, R10      // bytes of a group of a

pair:
	MOVQ ldfrom+128(FP), AX
	SHLQ $2, AX
	MOVQ rows+136(FP), CX
	IMULQ AX, CX
	LEAQ (R12)(CX*1), DX
	MOVQ R12, SI
	LEAQ (DX)(CX*1), R12
	TILE_LOAD(0, inSI, 0)
	TILE_LOAD(1, inSI, 64)
	TILE_LOAD(2, inDX, 0)
	TILE_LOAD(3, inDX, 64)
	MOVQ R11, SI
	LEAQ (SI)(R10*1), DX
	LEAQ (DX)(R10*1), R11
	MOVQ b_base+48(FP), DI
	MOVQ R9, CX
	MOVQ $64, AX               // bytes from row to row in a and b

step:
	TILE_LOAD(4, inSI, 2048)   // low part of a, high of b
	TILE_LOAD(6, inDI, 0)
	TILE_MUL(0, 4, 6)
	FETCH(3072, SI)
	TILE_LOAD(7, inDI, 1024)
	TILE_MUL(1, 4, 7)
	FETCH(3584, SI)
	TILE_LOAD(4, inSI, 0)
	TILE_LOAD(5, inDX, 2048)
	TILE_MUL(2, 5, 6)
	FETCH(4096, SI)
	TILE_MUL(3, 5, 7)
	FETCH(4608, SI)
	TILE_LOAD(5, inDX, 0)      // high, high
	TILE_MUL(0, 4, 6)
	FETCH(5120, SI)
	TILE_MUL(2, 5, 6)
	FETCH(5632, SI)
	TILE_LOAD(6, inDI, 4096)
	TILE_MUL(1, 4, 7)
	FETCH(3072, DX)
	TILE_MUL(3, 5, 7)
	FETCH(3584, DX)
	TILE_LOAD(7, inDI, 5120)   // high, low
	TILE_MUL(0, 4, 6)
	FETCH(4096, DX)
	TILE_MUL(2, 5, 6)
	FETCH(4608, DX)
	TILE_LOAD(6, inDI, 2048)
	TILE_MUL(1, 4, 7)
	FETCH(5120, DX)
	TILE_MUL(3, 5, 7)
	FETCH(5632, DX)
	TILE_LOAD(7, inDI, 3072)   // high, middle
	TILE_MUL(0, 4, 6)
	FETCH(6144, DI)
	TILE_MUL(1, 4, 7)
	FETCH(6656, DI)
	TILE_LOAD(4, inSI, 1024)
	TILE_MUL(2, 5, 6)
	FETCH(7168, DI)
	TILE_MUL(3, 5, 7)
	FETCH(7680, DI)
	TILE_LOAD(5, inDX, 1024)   // middle, middle
	TILE_MUL(0, 4, 6)
	FETCH(8192, DI)
	TILE_MUL(2, 5, 6)
	FETCH(8704, DI)
	TILE_LOAD(6, inDI, 0)
	TILE_MUL(1, 4, 7)
	FETCH(9216, DI)
	TILE_MUL(3, 5, 7)
	FETCH(9728, DI)
	TILE_LOAD(7, inDI, 1024)   // middle, high
	TILE_MUL(0, 4, 6)
	FETCH(10240, DI)
	TILE_MUL(2, 5, 6)
	FETCH(10752, DI)
	TILE_MUL(1, 4, 7)
	FETCH(11264, DI)
	TILE_MUL(3, 5, 7)
	FETCH(11776, DI)
	MOVQ chunks+168(FP), AX
	TESTQ AX, AX
	JZ fetched

fetch:
	PREFETCHT1 (R15)
	PREFETCHT1 64(R15)
	PREFETCHT1 128(R15)
	PREFETCHT1 192(R15)
	ADDQ $256, R15
	DECQ AX
	JNZ fetch

fetched:
	MOVQ $64, AX
	ADDQ $3072, SI
	ADDQ $3072, DX
	ADDQ $6144, DI
	DECQ CX
	JNZ step

	MOVQ R13, AX
	MOVQ rows+136(FP), CX
	IMULQ AX, CX
	LEAQ (BX)(CX*1), DX
	TILE_STORE(0, inBX, 0)
	TILE_STORE(1, inBX, 64)
	TILE_STORE(2, inDX, 0)
	TILE_STORE(3, inDX, 64)
	LEAQ (DX)(CX*1), BX
	DECQ R8
	JNZ pair
	TILE_RELEASE
	RET

// THIRD rounds two registers of floats to bfloat16, stores these side by side
// and leaves what rounding took off.
#define THIRD(X, Y, TO) \
	VPADDD Z30, X, Z2; \
	VPADDD Z30, Y, Z3; \
	VPANDD Z31, Z2, Z2; \
	VPANDD Z31, Z3, Z3; \
	VSUBPS Z2, X, X; \
	VSUBPS Z3, Y, Y; \
	VPSRLD $16, Z2, Z2; \
	VPORD Z3, Z2, Z2; \
	VMOVUPS Z2, TO

// func split(dst, x []float32, rows, steps, ldx int)
TEXT ·split(SB), NOSPLIT, $0-72
	MOVQ dst_base+0(FP), DX
	MOVQ x_base+24(FP), BX
	MOVQ rows+48(FP), R8
	MOVQ steps+56(FP), R9
	MOVQ ldx+64(FP), R10
	SHLQ $2, R10
	MOVL $0x8000, AX
	VPBROADCASTD AX, Z30       // half of the last bit that is kept
	MOVL $0xFFFF0000, AX
	VPBROADCASTD AX, Z31

row:
	MOVQ BX, SI
	MOVQ DX, DI
	MOVQ R9, CX

step:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	THIRD(Z0, Z1, (DI))
	THIRD(Z0, Z1, 1024(DI))
	VPSRLD $16, Z0, Z0         // what is left is a bfloat16
	VPORD Z1, Z0, Z0
	VMOVUPS Z0, 2048(DI)
	ADDQ $128, SI
	ADDQ $3072, DI
	DECQ CX
	JNZ step
	ADDQ R10, BX
	ADDQ $64, DX
	DECQ R8
	JNZ row
	VZEROUPPER
	RET
