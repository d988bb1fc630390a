/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_job.h: the state of a run of an 8-bit convolution, which i8.c
 * shares with the files that compute its parts. */
#ifndef BYI_I8_JOB_H
#define BYI_I8_JOB_H

#include "kernels/i8_shape.h"

enum { I8_PIECES = 128 /* most pieces of a row that is read in place */ };

/* A run, which threads divide among themselves. */
struct i8_job {
    const struct byi_i8_conv_run *run;
    const struct byi_i8_conv *conv;
    enum byi_i8_form form;
    const uint32_t *panels; /* packed words                              */
    int64_t words;          /* words of a column of a panel */
    int64_t rows, tiles;    /* `rows`: positions of all images */
    int64_t tile_rows, larger_tiles; /* rows of a tile; the first tiles, which
                                        have one row more */
    int64_t block_columns;           /* columns of a column block */
    int64_t column_blocks;           /* of a group */
    int64_t outputs;                 /* of a group */
    int64_t channels;                /* of a group */
    int64_t n_pieces;                /* pieces of a row */
    bool pointwise;                  /* row i of x is row i of y */
    bool in_place;       /* rows are read from x                      */
    bool by_blocks;      /* blocks are used instead of tiles */
    bool strips;         /* the kernels for strips are used */
    int64_t ld;          /* bytes of a gathered row                   */
    int64_t chunk_tiles; /* tiles whose rows are found together */
    struct byi_i8_epilogue e;
    int64_t size;         /* bytes of a result              */
    uint8_t flip;         /* flips bytes of x */
    const uint8_t *zeros; /* a row filled with x's zero point */
    const uint8_t *x_end; /* of all images */
    int64_t image;        /* bytes of an image of x         */
    char *scratch;        /* scratch of the threads         */
    int64_t per_thread;   /* bytes of a thread's scratch */
};

/* Vectors of words in a row of a depthwise convolution. */
static inline int64_t i8_interleaved_positions(const struct byi_i8_conv *conv)
{
    return (conv->out[2] - 1) * conv->stride[2] +
           (conv->size[2] - 1) * conv->dilation[2] + 1;
}

/* The position of an output, the first tap of its window along each axis, and
 * its image. */
struct i8_place {
    const uint8_t *image;
    int64_t out[BYI_I8_AXES], first[BYI_I8_AXES];
};

/* The place of output `row`, numbered through all images. */
static inline struct i8_place i8_place_of(const struct i8_job *j, int64_t row)
{
    const struct byi_i8_conv *conv = j->conv;
    const int64_t positions = i8_positions_of(conv);
    struct i8_place at = {.image = (const uint8_t *)j->run->x +
                                   row / positions * j->image};
    int64_t rest = row % positions;
    for (int i = BYI_I8_AXES; i-- > 0; rest /= conv->out[i]) {
        at.out[i] = rest % conv->out[i];
        at.first[i] = at.out[i] * conv->stride[i] - conv->pad[i];
    }
    return at;
}

/* Move to the next output. */
static inline void i8_next_place(const struct i8_job *j, struct i8_place *at)
{
    const struct byi_i8_conv *conv = j->conv;
    for (int i = BYI_I8_AXES; i-- > 0;) {
        at->first[i] += conv->stride[i];
        if (++at->out[i] < conv->out[i])
            return;
        at->out[i] = 0;
        at->first[i] = -conv->pad[i];
    }
    at->image += j->image;
}

/* The beginning of a line of the window; NULL if the line is outside of the
 * image. */
static inline const uint8_t *i8_line_at(const struct byi_i8_conv *conv,
                                        const struct i8_place *at, int64_t d,
                                        int64_t h)
{
    const int64_t z = at->first[0] + d * conv->dilation[0];
    const int64_t y = at->first[1] + h * conv->dilation[1];
    if (z < 0 || z >= conv->in[0] || y < 0 || y >= conv->in[1])
        return NULL;
    return at->image + (z * conv->in[1] + y) * conv->in[2] * conv->channels;
}

/* i8_rows.c. Find pointers to the pieces of rows [row, row + n) of group
 * `group`. */
void i8_find_rows(const struct i8_job *j, int64_t group, int64_t row, int64_t n,
                  const uint8_t **to);
/* Gather rows [row, row + n) of group `group`. */
void i8_gather_rows(const struct i8_job *j, int64_t group, int64_t row,
                    int64_t n, char *to);

/* i8_tiles.c. Multiply tiles [begin, end) by column blocks [first, last),
 * numbered through all groups. `scratch` belongs to the calling thread. */
void i8_run_tiles(const struct i8_job *j, int64_t begin, int64_t end,
                  int64_t first, int64_t last, char *scratch);

/* i8_blocks.c. Bytes of a thread's scratch for the rows of a block. */
int64_t i8_block_bytes(const struct byi_i8_conv *conv);
/* Multiply rows [begin, end) by column blocks [first, last), numbered through
 * all groups. `scratch` belongs to the calling thread. */
void i8_run_blocks(const struct i8_job *j, int64_t begin, int64_t end,
                   int64_t first, int64_t last, char *scratch);

/* i8_depthwise.c. Compute output rows [begin, end), numbered through all
 * images, of strips [first, last) of channels. `scratch` belongs to the calling
 * thread. */
void i8_depthwise_rows(const struct i8_job *j, int64_t begin, int64_t end,
                       int64_t first, int64_t last, char *scratch);

#endif
