"""Learning: what real training learns, and real gradients on the clock of any trace. Only torch models need torch.

objective       what is learned, as a replay sees it:
quadratic           a known optimum, and noise
sparse              a made-up task whose gradients touch few of the parameters
torch_model         any torch model
problems        the models of real runs and their data
kernels         which of torch's routines compute them
digits          data
batches         which samples each worker has
rates           learning rates, and the effective batch that they go with
optimizers      SGD, momentum, Adam
updates         what a trace tells those who replay it
replay          gradients in the order of a trace
curve           loss and accuracy against updates, samples and seconds
"""
