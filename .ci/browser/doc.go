// Package browser drives racflow's pages in a real Chromium, as people use them: it opens a
// page, presses keys, takes screenshots in both themes, has axe-core look for what keeps
// people out, and reports every request, message of the console and exception.
//
// It is a module of its own, so that racflow does not depend on what it needs. The script
// run gets Chromium and axe-core and runs the tests; without the script, a test is skipped
// where RACFLOW_TEST_AXE does not name axe-core's file or there is no Chromium.
package browser
