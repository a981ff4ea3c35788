#include "runtime/verify.h"

#include <set>

#include "base/error.h"
#include "ir/tensor.h"
#include "ops/op.h"
#include "runtime/attrs.h"
#include "runtime/fb.h"

namespace rutter::runtime {
namespace {

class Verifier {
 public:
  Verifier(const fb::Plan& p, int64_t weights) : p_(p), weights_(weights), exprs_(int(count(p.exprs()))) {}

  void run() {
    io();
    exprs();
    checks();
    buffers();
    layers();
    if (count(p_.regions()) != 1) bad("{} regions; control flow is not supported by this version", count(p_.regions()));
    uint32_t i = 0;
    for (const fb::Instruction* x : each(p_.regions()->Get(0)->code())) instruction(*x, i++);
    names(p_.kernels(), "kernel");
    if (p_.spin_us() < 0 || p_.spin_us() > 1000000) bad("spin time of {} microseconds", p_.spin_us());
    if (p_.wait_us() < 0 || p_.wait_us() > 1000000) bad("waiting time of {} microseconds", p_.wait_us());
    if (p_.threads_hint() < 0) bad("{} threads", p_.threads_hint());
    profiles();
  }

 private:
  template <typename... A>
  [[noreturn]] void bad(fmt::format_string<A...> f, A&&... a) {
    throw UserError("engine has a broken plan: {}", fmt::format(f, std::forward<A>(a)...));
  }
  template <typename T>
  static const flatbuffers::Vector<T>& each(const flatbuffers::Vector<T>* v) {
    static const uint32_t empty[2] = {0, 0};
    return v ? *v : *reinterpret_cast<const flatbuffers::Vector<T>*>(empty);
  }
  void expr(int64_t e, std::string_view what, bool optional = false) {
    if (e < (optional ? -1 : 0) || e >= exprs_) bad("{} is expression {} of {}", what, e, exprs_);
  }
  void exprList(const flatbuffers::Vector<int32_t>* v, std::string_view what) {
    for (int32_t e : each(v)) expr(e, what);
  }
  void names(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* v, std::string_view what) {
    std::set<std::string_view> seen;
    for (const flatbuffers::String* s : each(v)) {
      if (view(s).empty()) bad("a {} without a name", what);
      if (!seen.insert(view(s)).second) bad("two of a kind: {} '{}'", what, view(s));
    }
  }

  void io() {
    profiles_ = p_.profiles();
    if (profiles_ < 1 || profiles_ > 1024) bad("{} profiles", profiles_);
    std::set<std::string_view> seen;
    bool outputs = false;
    for (const fb::IoTensor* t : each(p_.io())) {
      std::string_view name = view(t->name());
      if (name.empty()) bad("an input or output without a name");
      if (!seen.insert(name).second) bad("two inputs or outputs named '{}'", name);
      if (t->is_input() && outputs) bad("input '{}' after the outputs", name);
      outputs |= !t->is_input();
      dtype(t->dtype(), name);
      if (ir::DType(t->dtype()) == ir::DType::kString) bad("'{}' holds strings, which this version cannot pass", name);
      uint32_t rank = count(t->dims());
      if (rank > kMaxRank) bad("'{}' has rank {}, at most {}", name, rank, kMaxRank);
      exprList(t->dims(), name);
      if (count(t->order())) {
        uint32_t axes = 0;
        for (uint8_t a : *t->order())
          if (a < rank) axes |= 1u << a;
        if (t->order()->size() != rank || axes != (1u << rank) - 1)
          bad("'{}' has an order that is no permutation", name);
      }
      if (count(t->dim_names()) && count(t->dim_names()) != rank)
        bad("'{}' names {} of {} axes", name, count(t->dim_names()), rank);
      if (!t->is_input()) continue;
      inputRank_.push_back(int(rank));
      uint64_t n = uint64_t(profiles_) * rank;
      if (count(t->min()) != n || count(t->opt()) != n || count(t->max()) != n)
        bad("'{}' lacks ranges of a profile", name);
      for (uint32_t i = 0; i < n; i++)
        if (t->min()->Get(i) < 0 || t->min()->Get(i) > t->opt()->Get(i) || t->opt()->Get(i) > t->max()->Get(i) ||
            t->max()->Get(i) > INT32_MAX)
          bad("'{}' has a range that is not 0 <= min <= opt <= max < 2^31", name);
    }
  }
  void dtype(uint8_t t, std::string_view what) {
    if (t > uint8_t(ir::DType::kString)) bad("'{}' has unknown element type {}", what, t);
  }
  void exprs() {
    for (int i = 0; i < exprs_; i++) {
      const fb::DimExpr& e = *p_.exprs()->Get(uint32_t(i));
      switch (e.op()) {
        case fb::DimOp::Constant:
          continue;
        case fb::DimOp::InputDim:
          if (e.a() < 0 || e.a() >= int(inputRank_.size()))
            bad("expression {} reads input {} of {}", i, e.a(), inputRank_.size());
          if (e.b() < 0 || e.b() >= inputRank_[size_t(e.a())])
            bad("expression {} reads axis {} of input {}", i, e.b(), e.a());
          continue;
        default:
          break;
      }
      if (e.op() < fb::DimOp::MIN || e.op() > fb::DimOp::MAX)
        bad("expression {} has unknown operation {}", i, int(e.op()));
      if (e.a() < 0 || e.a() >= i || e.b() < 0 || e.b() >= i) bad("expression {} does not refer to earlier ones", i);
    }
  }
  void checks() {
    for (const fb::Check* c : each(p_.checks())) {
      if (c->kind() < fb::CheckKind::MIN || c->kind() > fb::CheckKind::MAX)
        bad("a check of unknown kind {}", int(c->kind()));
      expr(c->a(), "a check");
      expr(c->b(), "a check");
    }
  }
  void buffers() {
    if (p_.arena_bytes() < 0 || p_.arena_bytes() > (int64_t(1) << 60)) bad("an arena of {} bytes", p_.arena_bytes());
    uint32_t i = 0;
    for (const fb::Buffer* b : each(p_.buffers())) {
      switch (b->place()) {
        case fb::Place::Input:
        case fb::Place::Output:
          if (b->io() < 0 || b->io() >= int(count(p_.io())) ||
              p_.io()->Get(uint32_t(b->io()))->is_input() != (b->place() == fb::Place::Input))
            bad("buffer {} stands for input or output {}", i, b->io());
          expr(b->size(), fmt::format("size of buffer {}", i));
          break;
        case fb::Place::Arena:
          if (b->offset() < 0 || b->offset() > p_.arena_bytes())
            bad("buffer {} begins at {} of {}", i, b->offset(), p_.arena_bytes());
          expr(b->size(), fmt::format("size of buffer {}", i));
          break;
        case fb::Place::Weights:
          if (b->offset() < 0 || b->bytes() < 0 || b->offset() > weights_ || b->bytes() > weights_ - b->offset())
            bad("buffer {} takes {} bytes at {} of {} bytes of weights", i, b->bytes(), b->offset(), weights_);
          break;
        default:
          bad("buffer {} lies in unknown place {}", i, int(b->place()));
      }
      i++;
    }
  }
  void layers() {
    for (const fb::Layer* l : each(p_.layers())) {
      expr(l->flops(), "flops of a layer", true);
      expr(l->bytes(), "bytes of a layer", true);
    }
  }
  void ref(const fb::Ref& r, uint32_t i, bool written) {
    if (r.buffer() < 0 || r.buffer() >= int(count(p_.buffers())))
      bad("instruction {} refers to buffer {} of {}", i, r.buffer(), count(p_.buffers()));
    expr(r.offset(), fmt::format("an offset of instruction {}", i), true);
    fb::Place place = p_.buffers()->Get(uint32_t(r.buffer()))->place();
    if (written && place != fb::Place::Arena && place != fb::Place::Output)
      bad("instruction {} writes to an input or to weights", i);
  }
  void operand(const fb::Operand& o, uint32_t i, bool written) {
    if (!o.present()) return;
    if (!o.ref()) bad("an operand of instruction {} has no place", i);
    ref(*o.ref(), i, written);
    dtype(o.dtype(), fmt::format("instruction {}", i));
    if (ir::DType(o.dtype()) == ir::DType::kString)
      bad("instruction {} works on strings, which this version cannot run", i);
    exprList(o.dims(), fmt::format("an extent of instruction {}", i));
  }
  void instruction(const fb::Instruction& x, uint32_t i) {
    if (x.layer() < 0 || x.layer() >= int(count(p_.layers())))
      bad("instruction {} belongs to layer {} of {}", i, x.layer(), count(p_.layers()));
    if (!x.action()) bad("instruction {} does nothing", i);
    switch (x.action_type()) {
      case fb::Action::Launch: {
        const fb::Launch& l = *x.action_as_Launch();
        if (l.kernel() < 0 || l.kernel() >= int(count(p_.kernels())))
          bad("instruction {} launches kernel {} of {}", i, l.kernel(), count(p_.kernels()));
        for (const fb::Ref* r : each(l.refs())) ref(*r, i, false);
        exprList(l.dims(), fmt::format("an extent of instruction {}", i));
        expr(l.tasks(), fmt::format("the task count of instruction {}", i));
        if (l.scratch() < 0 || l.scratch() > (int64_t(1) << 32))
          bad("instruction {} asks for {} bytes of scratch", i, l.scratch());
        if (l.max_threads() < 0 || l.schedule() > 2 || l.grain() < 1)
          bad("instruction {} has schedule {}, grain {}, thread limit {}", i, l.schedule(), l.grain(), l.max_threads());
        return;
      }
      case fb::Action::Reference: {
        const fb::Reference& r = *x.action_as_Reference();
        if (!ops::findOp(view(r.domain()), view(r.op())))
          bad("instruction {} runs operator '{}', which this version does not know", i, view(r.op()));
        try {
          decodeAttrs({r.attrs() ? r.attrs()->data() : nullptr, count(r.attrs())});
        } catch (const UserError& e) {
          bad("instruction {} ({}): {}", i, view(r.op()), e.what());
        }
        for (const fb::Operand* o : each(r.inputs())) operand(*o, i, false);
        for (const fb::Operand* o : each(r.outputs())) operand(*o, i, true);
        return;
      }
      case fb::Action::Copy: {
        const fb::Copy& c = *x.action_as_Copy();
        if (!c.from() || !c.to()) bad("instruction {} copies from or to nowhere", i);
        ref(*c.from(), i, false);
        ref(*c.to(), i, true);
        expr(c.bytes(), fmt::format("the size of instruction {}", i));
        return;
      }
      default:
        bad("instruction {} is of unknown kind {}", i, int(x.action_type()));
    }
  }
  void profiles() {
    std::vector<int64_t> values(static_cast<size_t>(exprs_)), dims;
    for (int profile = 0; profile < profiles_; profile++)
      for (int which = 0; which < 3; which++) {
        dims.clear();
        for (const fb::IoTensor* t : each(p_.io()))
          for (uint32_t a = 0, rank = count(t->dims()); t->is_input() && a < rank; a++)
            dims.push_back((which == 0   ? t->min()
                            : which == 1 ? t->opt()
                                         : t->max())
                               ->Get(uint32_t(profile) * rank + a));
        try {
          evaluateExprs(p_, dims, values);
        } catch (const UserError& e) {
          bad("profile {}: {}", profile, e.what());
        }
        if (failedCheck(p_, values) >= 0) continue;  // never runs with these shapes
        if (std::string why = checkSizes(p_, values, p_.arena_bytes()); !why.empty())
          bad("profile {}: {}", profile, why);
      }
  }

  const fb::Plan& p_;
  const int64_t weights_;
  const int exprs_;
  int profiles_ = 0;
  std::vector<int> inputRank_;
};

}  // namespace

const fb::Plan& openPlan(std::string_view bytes, int64_t weightsBytes) {
  // A table takes at least 4 bytes, so the size bounds their number (shared tables aside, which no writer makes).
  flatbuffers::Verifier v(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), 32,
                          flatbuffers::uoffset_t(bytes.size() / 4 + 1));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 || !fb::VerifyPlanBuffer(v))
    throw UserError("engine has a broken plan: it is not a well-formed FlatBuffer");
  const fb::Plan& plan = *fb::GetPlan(bytes.data());
  verifyPlan(plan, weightsBytes);
  return plan;
}
void verifyPlan(const fb::Plan& plan, int64_t weightsBytes) {
  Verifier(plan, weightsBytes).run();
}

}  // namespace rutter::runtime
