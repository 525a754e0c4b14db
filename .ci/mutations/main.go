// Command mutations makes one mistake after the other in the code (table.go), and shows which of them the simulation finds:
// make mutations. The working tree stays as it is.
//
//	go run ./.ci/mutations [-only PATTERN] [-seeds N] [-compile]
//
// It fails if too few are found, or if one is no mistake that can be made: its text is not in the code, or it does not
// compile, or the simulation fails without it.
package main

import (
	"cmp"
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

const simulation = "./engine/internal/simulation"

var (
	only    = flag.String("only", "", "those whose names match")
	seeds   = flag.Int("seeds", 0, "how many histories of each; 0: as many as CI has")
	compile = flag.Bool("compile", false, "only find out whether they compile")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		log.Fatal(err)
	}
	all, found, wrong := 0, 0, 0
	sound := map[string]error{} // what tests say of the code as it is
	fmt.Printf("%-46s %-14s %-9s %8s %8s\n", "mutation", "test", "", "seed", "seconds")
	for _, m := range mutations {
		if !chosen.MatchString(m.name) {
			continue
		}
		all++
		begun, verdict, seed := time.Now(), "", ""
		overlay, err := m.overlay(dir)
		if _, known := sound[m.test]; err == nil && !known && !*compile {
			if verdict, seed, sound[m.test] = try(m, ""); sound[m.test] == nil && verdict == "found" {
				sound[m.test] = fmt.Errorf("%s fails without a mutation, at seed %s", m.test, seed)
			}
			begun = time.Now()
		}
		if err = cmp.Or(err, sound[m.test]); err == nil {
			verdict, seed, err = try(m, overlay)
		}
		switch {
		case err != nil:
			verdict, wrong = "wrong", wrong+1
		case verdict == "found":
			found++
		}
		fmt.Printf("%-46s %-14s %-9s %8s %8.0f\n", m.name, m.test, verdict, seed, time.Since(begun).Seconds())
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

// overlay writes the changed files below dir, and a file for go test -overlay.
func (m mutation) overlay(dir string) (string, error) {
	changed, replace := map[string]string{}, map[string]string{}
	for _, e := range m.edits {
		source, err := os.ReadFile(e.file)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(source), e.old); n != 1 {
			return "", fmt.Errorf("%s has this %d times: %s", e.file, n, e.old)
		}
		changed[e.file] = strings.Replace(cmp.Or(changed[e.file], string(source)), e.old, e.to, 1)
	}
	for file, text := range changed {
		name := strconv.Itoa(len(replace)) + ".go"
		here, err := filepath.Abs(file)
		if replace[here] = filepath.Join(dir, name); err == nil {
			err = os.WriteFile(replace[here], []byte(text), 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, text, 0o600))
}

var failedSeed = regexp.MustCompile(`seed (\d+): `)

// try runs a test over the changed code. A test that does not end finds something, too.
func try(m mutation, overlay string) (verdict, seed string, err error) {
	args := []string{"test", "-overlay", overlay, "-count", "1", "-vet=off", "-timeout", "120s", "-run", "^" + m.test + "$", simulation, "-seeds", strconv.Itoa(*seeds)}
	if *compile {
		args = []string{"vet", "-overlay", overlay}
		for _, e := range m.edits {
			args = append(args, "./"+filepath.Dir(e.file))
		}
	}
	said, err := exec.Command("go", args...).CombinedOutput()
	text := string(said)
	switch at := failedSeed.FindStringSubmatch(text); {
	case strings.Contains(text, "[no tests to run]"):
		return "", "", errors.New("there is no such test")
	case err == nil && *compile:
		return "compiles", "", nil
	case err == nil:
		return "not found", "", nil
	case *compile || strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return "", "", errors.New(strings.TrimSpace(text))
	case at != nil:
		return "found", at[1], nil
	}
	return "found", "hangs", nil
}
