//go:build !unix

package document

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
