#include "remote/md5.h"

#include <openssl/evp.h>

namespace persia::agent {

std::optional<uint64_t> Md5Tail(std::string_view text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash, &size, EVP_md5(), nullptr) != 1 || size != 16) return std::nullopt;
  uint64_t tail = 0;
  for (unsigned i = 8; i < 16; ++i) tail = tail << 8 | hash[i];
  return tail;
}

}  // namespace persia::agent
