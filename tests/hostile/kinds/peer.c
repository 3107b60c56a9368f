/* A candidate that answers for its runner: what it sends is drawn with the seed in its input. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct Message { uint32_t magic, kind; uint64_t nonce; int64_t values[6]; };

static uint64_t state;
static uint64_t draw(uint64_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % below;
}

static int control(void) {
  for (int fd = 3; fd < 64; fd++) {
    struct stat s;
    if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode)) return fd;
  }
  return -1;
}

static uint64_t nonce(void) { /* the request still lies on the runner's stack */
  struct Message m;
  const char* top = (const char*)__builtin_frame_address(0);
  for (int at = 0; at < 1 << 14; at += 8) {
    memcpy(&m, top + at, sizeof m);
    if (m.magic == 0x3152424B && m.kind == 4) return m.nonce;
  }
  return 0;
}

static int64_t value(void) {
  static const int64_t odd[] = {0, 1, 2, 3, 4, -1, -5, INT64_MAX, INT64_MIN, 1 << 30, 11, 99, 999};
  return draw(4) ? odd[draw(sizeof odd / sizeof *odd)] : (int64_t)(draw(1u << 31) << 32 | draw(1u << 31));
}

static void say(uint64_t known) {
  struct Message m;
  m.magic = draw(8) ? 0x3152424B : (uint32_t)draw(1u << 31);
  m.kind = draw(4) ? 16 + draw(4) : draw(40);
  m.nonce = draw(3) ? known : draw(1u << 31);
  for (int i = 0; i < 6; i++) m.values[i] = value();
  char bytes[256];
  memset(bytes, (int)draw(256), sizeof bytes);
  memcpy(bytes, &m, sizeof m);
  size_t size = draw(5) ? sizeof m : draw(sizeof bytes);
  struct iovec part = {bytes, size};
  char room[CMSG_SPACE(sizeof(int))] = {0};
  struct msghdr h = {0};
  h.msg_iov = &part;
  h.msg_iovlen = 1;
  if (!draw(8)) {
    h.msg_control = room;
    h.msg_controllen = sizeof room;
    struct cmsghdr* c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = 1;
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  sendmsg(control(), &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int peer(const float* x, float* y, int64_t n, void* stream) {
  (void)y, (void)n, (void)stream;
  uint64_t known = nonce();
  state = (uint64_t)x[0] * 2654435761u + 12345;
  for (uint64_t count = draw(6); count; count--) {
    say(known);
    if (!draw(4)) usleep((useconds_t)draw(3000));
  }
  switch (draw(9)) {
    case 0: _exit((int)draw(256));
    case 1: abort();
    case 2: close(control()); return 0;
    case 3: shutdown(control(), (int)draw(3)); return 0;
    case 4: for (;;) usleep(50000);
    case 5: return (int)draw(1000);
    case 6: recv(control(), &state, 3, MSG_DONTWAIT); return 0;
    case 7: dup2(1, control()); return 0;
    default: usleep((useconds_t)draw(20000)); return 0;
  }
}
