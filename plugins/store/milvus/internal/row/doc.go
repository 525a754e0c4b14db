// Package row says what one row on the server is: its fields and keys, how an
// entry becomes a row, and how what a server returns becomes entries again. No row
// of an entry is ever changed: an entry that is put again has another row. It
// makes no calls.
package row
