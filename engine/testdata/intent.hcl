# The pipeline of the examples: statistical voters alone.
knowledge "utterances" {
  source { path = "../../examples/intent/train.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}

pipeline "intent" {
  input { path = "../../examples/intent/test.tsv" }
  retrieve "near" {
    from  = knowledge.utterances
    top_k = 60
  }
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  elect "soft" { use = "soft" }
}
