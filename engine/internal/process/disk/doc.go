// Package disk writes files atomically, so that other programs never see a partial file, and creates
// folders that only their owner can read. It also copies and links files, and finds files by patterns
// and by names in either Unicode form.
package disk
