package mapping

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Wrong is about an argument of the file.
func Wrong(argument, format string, args ...any) error {
	name, path, _ := strings.Cut(argument, ".")
	e := &sdk.ArgumentError{Argument: name, Err: fmt.Errorf(format, args...)}
	if path != "" {
		e.Path = []string{path}
	}
	return sdk.Invalid(e)
}

// List writes the first names of a list.
func List(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
