"""Files of an NNEF model: archives, tensors, packed codes.

Bytes become arrays here and the other way round. No module here reads a document.
"""
