// A view of consecutive elements, like C++20's std::span, for programs of C++17. It does not own them.
//
// Vectors, arrays and std::span convert to it, and it converts to std::span. Thread safety: as that of a pointer.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace persia::metrics {
inline namespace abi_1 {

// `size` elements from `data` on. `T` is const, as in `Span<const double>`.
template <class T>
class Span {
  static_assert(std::is_const_v<T>, "the elements of a Span cannot be changed through it");
  template <class Range>
  using DataOf = std::remove_pointer_t<decltype(std::declval<const Range&>().data())>;

 public:
  using element_type = T;                     // the element, const
  using value_type = std::remove_const_t<T>;  // the element
  using iterator = T*;                        // an iterator

  // No elements.
  constexpr Span() noexcept = default;
  // `size` elements from `data` on.
  constexpr Span(T* data, size_t size) noexcept : data_(data), size_(size) {}
  // The elements of an array.
  template <size_t kSize>
  constexpr Span(T (&array)[kSize]) noexcept : data_(array), size_(kSize) {}  // NOLINT: implicit
  // The elements of a vector, an array, a std::span or another class with `data()` and `size()`, which must outlive the view.
  template <class Range, class = std::enable_if_t<std::is_convertible_v<DataOf<Range> const (*)[], T (*)[]>>>
  constexpr Span(const Range& range) noexcept : data_(range.data()), size_(range.size()) {}  // NOLINT: implicit

  // The elements.
  // @{
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr T* begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] constexpr T& operator[](size_t index) const noexcept { return data_[index]; }
  // @}

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace abi_1
}  // namespace persia::metrics
