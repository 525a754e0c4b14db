# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# Questions find the chunks that this stage cuts.

knowledge "docs" {
  source { path = "docs" }
  chunk {
    use = "<<.Name>>/<<.Name>>"
    config { mark = "#" }
  }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "answers" {
  input { path = "questions.tsv" }
  retrieve "found" {
    from  = knowledge.docs
    top_k = 3
  }
}
