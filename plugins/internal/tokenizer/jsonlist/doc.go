// Package jsonlist reads the long lists of a tokenizer.json, vocabularies and merges, element by
// element. Package encoding/json would build all of a list before anybody could count it, which
// lets a small file ask for much memory, and takes twice the time.
//
// It reads JSON that encoding/json has checked, a json.RawMessage, and checks nothing itself.
package jsonlist
