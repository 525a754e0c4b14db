// Command mutations makes one mistake after the other in the code (table.go), and shows which of them the simulation finds:
// make mutations. The working tree stays as it is.
//
//	go run ./.ci/mutations [-only PATTERN] [-seeds N] [-compile]
//
// It fails if too few are found, or if a mistake cannot be made: its text is not in the code, it does not compile, or its
// test fails without it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	only    = flag.String("only", "", "mutations whose names match")
	seeds   = flag.Int("seeds", 0, "how many histories of each; 0: as many as CI has")
	compile = flag.Bool("compile", false, "only find out whether they compile")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	chosen, dir := regexp.MustCompile(*only), filepath.Join(os.TempDir(), fmt.Sprint("mutations-", os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		log.Fatal(err)
	}
	all, found, wrong, sound := 0, 0, 0, map[string]error{} // what tests say of the code as it is
	fmt.Printf("%-46s %-14s %-10s %8s %8s\n", "mutation", "test", "", "seed", "seconds")
	for _, m := range mutations {
		if !chosen.MatchString(m.name) {
			continue
		}
		overlay, err := m.overlay(dir)
		if _, known := sound[m.test]; !known && !*compile {
			seed, failed := m.try("")
			if seed != "" {
				failed = fmt.Errorf("%s fails without a mutation: seed %s", m.test, seed)
			}
			sound[m.test] = failed
		}
		begun, verdict, seed := time.Now(), "not found", ""
		if err = cmp.Or(err, sound[m.test]); err == nil {
			seed, err = m.try(overlay)
		}
		all++
		switch {
		case err != nil:
			verdict, wrong = "wrong", wrong+1
		case *compile:
			verdict = "compiles"
		case seed != "":
			verdict, found = "found", found+1
		}
		fmt.Printf("%-46s %-14s %-10s %8s %8.0f\n", m.name, m.test, verdict, seed, time.Since(begun).Seconds())
		if err != nil {
			fmt.Println("   ", strings.ReplaceAll(err.Error(), "\n", "\n    "))
		}
	}
	_ = os.RemoveAll(dir)
	fmt.Printf("%d of %d found\n", found, all)
	if wrong > 0 || !*compile && found < min(all, required) {
		os.Exit(1)
	}
}

// overlay writes the changed files below dir, and a file about them for go test -overlay.
func (m mutation) overlay(dir string) (string, error) {
	changed, replace := map[string]string{}, map[string]string{}
	for i, e := range m.edits {
		source, err := os.ReadFile(e.file)
		if n := strings.Count(string(source), e.old); err == nil && n != 1 {
			err = fmt.Errorf("%s has this %d times: %s", e.file, n, e.old)
		}
		changed[e.file] = strings.Replace(cmp.Or(changed[e.file], string(source)), e.old, e.to, 1)
		here, failed := filepath.Abs(e.file)
		replace[here] = filepath.Join(dir, strconv.Itoa(i)+".go")
		if err = cmp.Or(err, failed, os.WriteFile(replace[here], []byte(changed[e.file]), 0o600)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, text, 0o600))
}

var failedSeed = regexp.MustCompile(`seed (\d+): `)

// try runs the test over changed code, and returns the first seed that fails. A test that does not end finds something, too.
func (m mutation) try(overlay string) (seed string, err error) {
	args := []string{"test", "-overlay", overlay, "-count", "1", "-vet=off", "-timeout", "5m", "-run", "^" + m.test + "$", simulation, "-seeds", strconv.Itoa(*seeds)}
	if *compile {
		args = []string{"vet", "-overlay", overlay}
		for _, e := range m.edits {
			args = append(args, "./"+filepath.Dir(e.file))
		}
	}
	said, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput()
	text := string(said)
	switch at := failedSeed.FindStringSubmatch(text); {
	case err == nil && strings.Contains(text, "[no tests to run]"):
		return "", errors.New("there is no such test")
	case err == nil:
		return "", nil
	case *compile || strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return "", errors.New(strings.TrimSpace(text))
	case at != nil:
		return at[1], nil
	}
	return "hangs", nil
}
