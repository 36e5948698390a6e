"""Native CPU kernels: C++ compiled once per instruction set, the best one chosen when the backend is loaded."""
