package api

import (
	"reflect"
	"slices"
	"strings"
)

// Essential is a config without its secrets and the arguments that do not change results.
// A request made from it holds what the reply depends on, so it can be the reply's cache key.
func Essential[C any](config C) C {
	v := reflect.ValueOf(&config).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		_, flags, _ := strings.Cut(f.Tag.Get("config"), ",")
		if f.Tag.Get("affects_output") == "false" || slices.Contains(strings.Split(flags, ","), "secret") {
			v.FieldByIndex(f.Index).SetZero()
		}
	}
	return config
}
