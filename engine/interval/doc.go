// Package interval says how far chance alone can move a measured share, or the
// difference of two that were measured on the same items.
//
// A share gets the score interval (Wilson, "Probable inference, the law of
// succession, and statistical inference", JASA 22:209-212, 1927), which is close to
// its level on average and stays within 0 and 1. A promise needs a bound that holds
// whatever the true share is: AtLeast and AtMost are exact (Clopper and Pearson,
// "The use of confidence or fiducial limits illustrated in the case of the
// binomial", Biometrika 26:404-413, 1934).
//
// Two ways to answer the same items differ only on those that one of them alone gets
// right. Their difference gets the score interval for paired proportions (Tango,
// "Equivalence test and confidence interval for the difference in proportions for the
// paired-sample design", Statistics in Medicine 17:891-908, 1998), and the exact sign
// test (McNemar, "Note on the sampling error of the difference between correlated
// proportions or percentages", Psychometrika 12:153-157, 1947, with the binomial in
// place of its approximation).
//
// All of them take items as independent draws from what the pipeline will see. None
// corrects for having looked at many of them and named the best.
package interval
