// Package learned is an election that learns how much each voter is worth: a conditional
// logit over the voters' ballots (McFadden, "Conditional logit analysis of qualitative
// choice behavior", 1974), with one weight per voter.
//
// A label's score is the sum, over the voters, of weight times strength. The strength is 1
// for a label that has all of a voter's ballot and 0 for one that it does not name. Between
// the two it is the share of the ballot (see package ballot) for voters that give single
// answers, and for those that give distributions the logarithm of the share:
//
//	log(1 + share/0.001) / log(1 + 1/0.001)
//
// A distribution is a ballot of which a sample has more than one answer. A voter that
// abstains, or of which no answer is accepted, adds nothing to any label. Probabilities are
// exp(score) divided by its sum over all labels of the knowledge, and over the empty label
// where a voter says that none fits. The likeliest label wins; a tie goes to the one that
// was voted for first, in the order of the voters in the file. The confidence is its
// probability, calibrated, the agreement its share of the mean ballot, as elsewhere. So a weight is the
// log-odds that a voter's full vote adds to a label. It is never negative: a voter that is
// worth nothing gets nothing, and is not believed the opposite.
//
// # Learning
//
// Without the argument weights it learns from the votes on labelled rows: Fit maximises the
// likelihood of their labels by Newton's method, with a ridge penalty of 0.1/2 times the
// squared distance of the weights from 0.5. The labels that there are, are those of the
// rows and of the accepted answers on them. Rows without a label are left out. The order of
// the rows makes no difference. 10,000 rows with 150 labels and three statistical voters
// take about two seconds, and 16 bytes for each answer.
//
// The likelihood is not the accuracy, and few rows say little. So the voter that is right on
// most rows leads, its answer stands wherever it has one, unless five-fold cross-validation
// shows with 95 % certainty that the weighted votes are at most half a point worse. The
// confidence is that of the leader's answer then. Fewer than 20 rows choose no leader.
//
// Rows that were held out of the knowledge are not drawn as items are: a voter may be better
// on them for the way in which they were collected. There a voter leads only if it is as
// certain that the weighted votes are worse.
//
// Voters that err together make the likeliest label too sure of itself. So the log-odds of
// the answer are multiplied by a slope, and an offset is added, which are fitted to the
// answers of the cross-validation (Platt, "Probabilistic outputs for support vector machines
// and comparisons to regularized likelihood methods", 1999).
//
// What was learnt is in weights.json in the state folder, which can be read, changed, and
// copied into the arguments weights, leader and calibration.
//
// # Voters of which nothing is known
//
// A voter without a weight, such as a language model that is not asked about rows of the
// knowledge, has the weight 1: alone it makes a label 2.7 times as likely, so it decides
// where the others are in doubt. Of m such voters each has 1 / sqrt(m), since they err
// together. That was chosen on recorded answers of nine models with 17 to 78 % right,
// beside neighbours and prototype with fitted weights. Accuracy in percent, mean over sets
// of one, two, four and all nine models, and with the strongest model alone:
//
//	weight         MiniLM, 84.2 without models     hashed words, 73.0 without
//	0.5            84.1  84.3  84.3  83.0  84.8    73.2  73.9  76.2  77.8  74.8
//	1              84.1  83.7  82.1  77.7  85.8    74.1  75.6  76.6  75.5  77.5
//	2              82.6  80.7  77.0  72.8  87.0    74.4  74.4  73.8  71.8  81.8
//	0.5 / sqrt(m)  84.1  84.7  84.7  84.8  84.8    73.2  74.0  74.1  75.5  74.8
//	1 / sqrt(m)    84.1  84.3  84.3  84.2  85.8    74.1  75.3  76.2  78.8  77.5
//	2 / sqrt(m)    82.6  83.0  82.1  80.8  87.0    74.4  76.0  76.6  77.0  81.8
//
// A model that is better than that needs rows to show it: fit the election with its answers.
//
// It does not elect among texts: there is no list of those.
package learned
