# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# The answers to the prompts of this stage are read from a file, so that the pipeline runs without
# a model. With one, use = "openai" and its config stand in the place of the voter below.

knowledge "requests" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  prompt "examples" {
    use = "<<.Name>>/<<.Name>>"
    config { examples = 8 }
  }
  sample "model" {
    use = "recorded"
    config { path = "answers.tsv" }
  }
  elect "request" { use = "soft" }
}
