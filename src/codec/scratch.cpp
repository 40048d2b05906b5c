// Makes and frees a codec's working memory.
#include "codec/scratch.hpp"

namespace uzip {

// Not value-initialized: most of it is never touched.
CodecScratch::CodecScratch() : state_(new State) {}
CodecScratch::~CodecScratch() { delete state_; }

}  // namespace uzip
