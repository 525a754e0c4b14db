package analyze

// englishStops are words that nearly every English text has and that say nothing of
// what it is about. Words that deny stay: they are rare enough to tell.
const englishStops = `
	a an the and or but if of in on at by for to from with into as than
	is are was were be been being it its this that these those there
	they them their we our which who such will would has have had do does did`
