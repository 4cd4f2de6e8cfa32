// The payload, after its kind:
//
//   sample   U64 boot_ns, String driver, U32 devices, device*
//   device   String gpu, uuid, model, pci_bus_id, parent_uuid, U32 gpu_instance, U32 compute_instance, U8 is_divided,
//            U8 is_lost, U32 pids, U32 pid*, U32 values, (U8 field, F64 value)*
//   xid      String gpu, U64 xid, U64 unix_ms
//   problem  String text
#include "gpu/gpu_sample.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

constexpr uint32_t kMagic = 0x55504750;  // "PGPU"
constexpr size_t kHeaderBytes = 8;
enum Kind : uint8_t { kSample = 1, kXid = 2, kProblem = 3 };

void WriteDevice(const GpuDevice& device, ByteWriter& writer) {
  for (const std::string* text : {&device.gpu, &device.uuid, &device.model, &device.pci_bus_id, &device.parent_uuid})
    writer.String(*text);
  writer.U32(device.gpu_instance);
  writer.U32(device.compute_instance);
  writer.U8(device.is_divided ? 1 : 0);
  writer.U8(device.is_lost ? 1 : 0);
  writer.U32(static_cast<uint32_t>(device.pids.size()));
  for (const uint32_t pid : device.pids) writer.U32(pid);
  writer.U32(static_cast<uint32_t>(std::ranges::count_if(device.values, [](double value) { return !IsAbsent(value); })));
  for (size_t field = 0; field < device.values.size(); ++field) {
    if (IsAbsent(device.values[field])) continue;
    writer.U8(static_cast<uint8_t>(field));
    writer.F64(device.values[field]);
  }
}

// Decodes hostile bytes: keeps the first problem, after which all values are empty.
class Decoder {
 public:
  explicit Decoder(std::string_view payload) : reader_(payload) {}

  Result<GpuMessage> Read() {
    GpuMessage message;
    switch (reader_.U8()) {
      case kSample:
        message = ReadSample();
        break;
      case kXid:
        message = ReadXid();
        break;
      case kProblem:
        message = GpuProblem{Text("a problem")};
        break;
      default:
        Refuse("a message of an unknown kind");
    }
    if (!reader_.done()) Refuse(reader_.ok() ? "a message with bytes after its end" : "a message that ends too early");
    if (!problem_.empty()) return Error{problem_};
    return message;
  }

 private:
  void Refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  // Short, and fit for a log line and a label.
  std::string Text(const char* what) {
    const std::string_view text = reader_.String();
    if (text.size() > GpuMessages::kMaxTextBytes || (!text.empty() && !CheckText(text, what).ok())) {
      Refuse(std::string(what) + " that is no text: " + Quoted(text.substr(0, 32)));
      return "";
    }
    return std::string(text);
  }

  std::string Gpu() {
    std::string gpu = Text("the number of a device");
    const bool is_good = !gpu.empty() && gpu.size() <= 16 && gpu.find_first_not_of("0123456789:") == std::string::npos;
    if (!is_good) Refuse("the number of a device that is no number: " + Quoted(gpu));
    return gpu;
  }

  GpuSample ReadSample() {
    GpuSample sample;
    sample.boot_ns = reader_.U64();
    sample.driver = Text("the driver's version");
    constexpr size_t kLeastDeviceBytes = 32;
    const uint32_t devices = reader_.Count(kLeastDeviceBytes);
    if (devices > GpuMessages::kMaxDevices) Refuse(std::to_string(devices) + " devices");
    for (uint32_t i = 0; i < devices && problem_.empty() && reader_.ok(); ++i) {
      GpuDevice device = ReadDevice();
      const auto is_same = [&](const GpuDevice& other) { return other.gpu == device.gpu; };
      if (std::ranges::any_of(sample.devices, is_same)) Refuse("device " + device.gpu + " twice");
      sample.devices.push_back(std::move(device));
    }
    return sample;
  }

  GpuDevice ReadDevice() {
    GpuDevice device{.gpu = Gpu()};
    device.uuid = Text("a uuid");
    device.model = Text("a model");
    device.pci_bus_id = Text("a PCI address");
    device.parent_uuid = Text("a uuid");
    device.gpu_instance = reader_.U32();
    device.compute_instance = reader_.U32();
    device.is_divided = reader_.U8() != 0;
    device.is_lost = reader_.U8() != 0;
    const uint32_t pids = reader_.Count(sizeof(uint32_t));
    if (pids > GpuMessages::kMaxPids) Refuse(std::to_string(pids) + " processes on a device");
    for (uint32_t i = 0; i < pids && problem_.empty(); ++i) device.pids.push_back(reader_.U32());
    for (uint32_t left = reader_.Count(1 + sizeof(double)); left > 0 && problem_.empty(); --left) {
      const uint8_t field = reader_.U8();
      const double value = reader_.F64();
      if (field >= kGpuFields || !IsGpuValue(static_cast<GpuField>(field), value))
        Refuse("an impossible value of device " + device.gpu + ", field " + std::to_string(field));
      else
        device.values[field] = value;
    }
    return device;
  }

  GpuXid ReadXid() {
    GpuXid xid{.gpu = Gpu()};
    xid.xid = reader_.U64();
    xid.unix_ms = reader_.U64();
    constexpr uint64_t kMaxXid = 9999;
    if (xid.xid > kMaxXid) Refuse("XID " + std::to_string(xid.xid));
    return xid;
  }

  ByteReader reader_;
  std::string problem_;
};

}  // namespace

std::string EncodeGpuMessage(const GpuMessage& message) {
  ByteWriter payload;
  if (const auto* sample = std::get_if<GpuSample>(&message)) {
    payload.U8(kSample);
    payload.U64(sample->boot_ns);
    payload.String(sample->driver);
    payload.U32(static_cast<uint32_t>(sample->devices.size()));
    for (const GpuDevice& device : sample->devices) WriteDevice(device, payload);
  } else if (const auto* xid = std::get_if<GpuXid>(&message)) {
    payload.U8(kXid);
    payload.String(xid->gpu);
    payload.U64(xid->xid);
    payload.U64(xid->unix_ms);
  } else {
    payload.U8(kProblem);
    payload.String(std::get<GpuProblem>(message).text);
  }
  const std::string bytes = std::move(payload).Take();
  ByteWriter writer;
  writer.U32(kMagic);
  writer.U32(static_cast<uint32_t>(bytes.size()));
  return std::move(writer).Take() + bytes;
}

Result<bool> GpuMessages::Next(GpuMessage& message) {
  if (bytes_.size() < kHeaderBytes) return false;
  ByteReader header(bytes_);
  const uint32_t magic = header.U32();
  const uint32_t size = header.U32();
  if (magic != kMagic) return Error{"bytes that are no message: " + Quoted(bytes_.substr(0, kHeaderBytes))};
  if (size > kMaxBytes) return Error{"a message of " + std::to_string(size) + " bytes"};
  if (bytes_.size() - kHeaderBytes < size) return false;
  Result<GpuMessage> read = Decoder(std::string_view(bytes_).substr(kHeaderBytes, size)).Read();
  if (!read.ok()) return Error{read.error()};
  message = std::move(read).value();
  bytes_.erase(0, kHeaderBytes + size);
  return true;
}

}  // namespace persia::agent
