// std::sort of plain numbers in ascending order, which headers leave to the library: of the type
// SORTED, as only some are needed.
#include <algorithm>

_LIBCPP_BEGIN_NAMESPACE_STD

// With a comparison of our own the headers have all of it.
template <class Less, class Pointer>
void __sort(Pointer first, Pointer last, Less) {
  std::sort(first, last, [](auto one, auto other) { return one < other; });
}
template void __sort<__less<SORTED>&, SORTED*>(SORTED*, SORTED*, __less<SORTED>&);

_LIBCPP_END_NAMESPACE_STD
