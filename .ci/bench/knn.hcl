# What `make bench` compares with chromadb and sentence-transformers: the 50
# nearest by cosine, each voting with the weight exp(15 * cosine). The peer embeds in
# float32; the accuracy of both is printed.

variable "train" {
  type = path
}

variable "test" {
  type = path
}

knowledge "examples" {
  source { path = var.train }
  embed {
    use = "minilm"
    config { precision = "int8" }
  }
  store { use = "local" }
}

pipeline "knn" {
  input {
    path = var.test
  }
  retrieve "neighbours" {
    from  = knowledge.examples
    mode  = "dense"
    top_k = 50
  }
  sample "neighbours" {
    use = "neighbours"
    config {
      k = 50
    }
  }
  elect "answer" {
    use = "majority"
  }
}
