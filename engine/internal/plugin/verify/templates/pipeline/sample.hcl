# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# This stage votes beside a built-in voter.

knowledge "requests" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  sample "neighbours" { use = "neighbours" }
  sample "nearest" {
    use = "<<.Name>>/<<.Name>>"
    config { nearest = 5 }
  }
  elect "request" { use = "soft" }
}
