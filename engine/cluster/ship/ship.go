package ship

import (
	"context"
	"io"
)

// Shipped is a file at the servers.
type Shipped struct {
	Name   string `json:"name"`            // below the state folder, with slashes
	Digest string `json:"digest"`          // SHA-256 of the content, hexadecimal: the object's name
	Size   int64  `json:"size"`            // bytes
	Fixed  bool   `json:"fixed,omitempty"` // nobody changes it where it is put, so that it may be linked
	Moved  bool   `json:"-"`               // Put has sent it: it was not there before
}

// Objects are the servers' files by digest, as *bus.Conn has them.
type Objects interface {
	HasFile(ctx context.Context, digest string) (bool, error)
	PutFile(ctx context.Context, digest string, r io.Reader) error
	GetFile(ctx context.Context, digest string, w io.Writer) error
}
