// Package disk writes files atomically, so that other programs never see a partial one, and creates
// folders that only their owner can read. It also copies and links files for those who keep them, and
// finds files by names of either normal form and by patterns.
package disk
