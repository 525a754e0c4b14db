package analyze

import (
	"strings"
	"testing"
)

func TestEnglish(t *testing.T) {
	a, err := Named("english")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"The diseases OF T-cells, and it's not in vivo": "diseas t cell s not vivo",
		"the of and":           "",
		"Zellen être GNB2 a1s": "zellen être gnb2 a1s",
	} {
		if got := strings.Join(a.Append(nil, text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The examples of the paper, each through all steps.
func TestStem(t *testing.T) {
	for _, pair := range strings.Fields(`
		caresses:caress ponies:poni ties:ti caress:caress cats:cat
		feed:feed decreed:decre plastered:plaster bled:bled motoring:motor sing:sing
		conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss fizzed:fizz
		failing:fail filing:file happy:happi sky:sky
		relational:relat conditional:condit rational:ration valenci:valenc hesitanci:hesit digitizer:digit
		conformabli:conform radicalli:radic differentli:differ vileli:vile analogousli:analog vietnamization:vietnam
		predication:predic operator:oper feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous
		formaliti:formal sensitiviti:sensit sensibiliti:sensibl analogi:analog
		triplicate:triplic formative:form formalize:formal electriciti:electr electrical:electr hopeful:hope goodness:good
		revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust
		defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend adoption:adopt
		homologou:homolog communism:commun activate:activ angulariti:angular homologous:homolog effective:effect bowdlerize:bowdler
		probate:probat rate:rate cease:ceas controlling:control roll:roll
		generalizations:gener oscillators:oscil
		is:is a:a ion:ion being:be gnb2:gnb2 naïve:naïve`) {
		word, want, _ := strings.Cut(pair, ":")
		if got := stem(word); got != want {
			t.Errorf("stem of %s is %s, want %s", word, got, want)
		}
	}
}
