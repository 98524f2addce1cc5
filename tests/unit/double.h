/*
 * Put before every file of lib/nn (cc -include) for tests in double precision: central differences then tell a wrong gradient from
 * rounding. Tiles are small, so that a few dozen tokens fill several of each.
 */
#define real double
#define OPS_CPU_TILES
enum {
	ROWS = 16,
	ROWS_MIN = 16,
	QTILE = 6,
	KTILE = 16,
	QGROUP = 2,
	WTILE = 7,
	WPARTS = 3,
	WROWS = 16,
	WIDE = 20,
	VGROUPS = 2,
	VTILE = 16,
	FLAT = 100,
};
