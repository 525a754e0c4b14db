// The instructions of AMX, which Go's assembler does not know: the macros spell out their
// bytes, the VEX prefix, the opcode, the registers, and for memory base + AX + a constant.
#define TILE_CONFIG_AX BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILE_RELEASE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0
#define TILE_LOAD(T, BASE, OFFSET) \
	BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; \
	BYTE $(0x84|(T<<3)); BYTE $BASE; LONG $OFFSET
#define TILE_STORE(T, BASE, OFFSET) \
	BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; \
	BYTE $(0x84|(T<<3)); BYTE $BASE; LONG $OFFSET

// TDPBF16PS: tile C += tile A times tile B, pairs of bfloat16.
#define TILE_MUL(C, A, B) \
	BYTE $0xC4; BYTE $0xE2; BYTE $(0x02|((15-B)<<3)); BYTE $0x5C; \
	BYTE $(0xC0|(C<<3)|A)

// TDPBUSD: tile C += tile A times tile B, groups of four bytes, of A without sign.
#define TILE_MUL_BYTES(C, A, B) \
	BYTE $0xC4; BYTE $0xE2; BYTE $(0x01|((15-B)<<3)); BYTE $0x5E; \
	BYTE $(0xC0|(C<<3)|A)

#define TILE_ZERO(T) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $(0xC0|(T<<3))

// Registers as bases.
#define inDX 2
#define inBX 3
#define inSI 6
#define inDI 7
