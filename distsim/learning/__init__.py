"""Learning: models, data, and real gradients in the order and on the clock of any trace.

Only torch models need torch.

objective       the interface of a loss to be minimized:
quadratic           a known optimum, with noise
sparse              a made-up task whose gradients touch few of the parameters
torch_model         any torch model
problems        the models of real runs and their data
kernels         the choice of torch's routines
digits          data
batches         the samples of each worker
rates           learning rates, and the effective batch
optimizers      SGD, momentum
updates         the updates that a trace records, for a replay
replay          gradients in the order of a trace
sharpness       the steepest curvature of a loss
curve           loss and accuracy against updates, samples and seconds
"""
