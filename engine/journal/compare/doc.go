// Package compare sets two runs side by side: which items they answer differently, and
// whether one of them is right more often than chance explains.
//
// Items are matched by their ids, and by their lines where the input has no ids; of those with
// the same id the first is matched with the first. Where the input says what is expected,
// the runs are compared by what each alone gets right, with the exact test of McNemar
// ("Note on the sampling error of the difference between correlated proportions or
// percentages", Psychometrika 12:153-157, 1947; see package interval). An item that one of
// the runs has no answer to, since it failed, lacks a voter or was not reached, is
// counted and not compared; one that a run decided not to answer is wrong.
//
// It needs journals and no inputs. It prints nothing.
package compare
