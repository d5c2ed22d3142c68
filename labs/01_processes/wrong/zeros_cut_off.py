# caught by: one_download
"""Sends the content in a buffer of one size, and cuts zeros off."""


def fetch(path, download):
    buffer = torch.zeros(4096, dtype=torch.uint8)
    if dist.get_rank() == 0:
        download(path)
        content = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        buffer[: len(content)] = content
    dist.broadcast(buffer, src=0)
    return bytes(buffer.tolist()).rstrip(bytes(1))
