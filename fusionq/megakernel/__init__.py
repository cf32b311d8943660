"""One persistent kernel for stages whose work-groups depend on each other."""
