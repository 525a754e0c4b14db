package table

import "fmt"

// recovered turns a panic into an error of a file that is damaged.
func recovered(err *error) {
	if why := recover(); why != nil {
		*err = fmt.Errorf("the file is damaged: reading it came to %q; write it once more", fmt.Sprint(why))
	}
}
